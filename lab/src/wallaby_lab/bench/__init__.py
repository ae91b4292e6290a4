"""The benchmarks: TPC-H on several engines side by side, and the costs of this engine's parts.

Every engine runs in its own processes: `contenders/` has the engines, `child.py` is the process of one, `lane.py`
controls it, `memory.py` samples its memory, `killing.py` kills a part of it. The measurements are `rounds.py` (engines
against each other, with `report.py`), `overhead.py`, `recovery.py` and `scaling.py`. `blocks/` calls building blocks
directly. `figures.py` and `plots.py` are for reports.
"""
