"""Planning: from a relational tree to a stage graph with what each stage computes. Pure: no I/O, no clock.

`types`, `expression` and `relation` are the frozen tree that `catalyst/` reads a query into; `physical` is
what planning makes of it and what `kernels/` runs.
"""
