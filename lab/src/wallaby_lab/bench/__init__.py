"""The benchmarks: TPC-H by several engines side by side, and what the parts of this one cost.

Every engine runs in processes of its own: `contenders/` has the engines, `child.py` is the process of one, `lane.py`
is its other end, `memory.py` watches what it takes, `killing.py` kills a part of it. What is measured with them:
`course.py` (engines against each other, `report.py` makes figures of it), `overhead.py`, `recovery.py`, `scaling.py`.
`blocks/` calls building blocks directly. `figures.py` and `plots.py` are what reports are made with.
"""
