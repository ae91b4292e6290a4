"""The benchmark: TPC-H by several engines side by side, each in processes of its own, on the same cores.

`contenders/` has the engines, `child.py` is the process of one, `course.py` runs them against each other, `memory.py`
watches what they take, `report.py` makes figures and pages of it.
"""
