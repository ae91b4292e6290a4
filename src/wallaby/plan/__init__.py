"""Planning: from a relational tree to a stage graph with what each stage computes. Pure: no I/O, no clock.

`types`, `expression` and `relation` are the frozen tree that `catalyst/` reads a query into; `physical` is
what planning makes of it and what `kernels/` runs. In between:

- `planner.plan(relation, statistics, settings)` applies the `rules` and cuts the tree into stages, with `joins`,
  `aggregation` and `pipe` (a stage in the making); `unplannable` says for what there is no plan, as `reason`s;
- `statistics` is what footers tell, `estimate` and `selectivity` are what planning makes of it;
- `explain` writes a plan for people, `serialize` for workers.
"""
