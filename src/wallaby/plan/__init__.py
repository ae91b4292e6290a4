"""Planning: from a relational tree to a stage graph with what each stage computes. Pure: no I/O, no clock.

`reading` reads a query into the frozen trees of `relations`; `physical` is what planning makes of it, and what
`operators` run. In between:

- `planner.plan(relation, statistics, settings)` applies the `rules` and cuts the tree into stages, with `joins`,
  `aggregation` and `open_stage`; `unplannable` says for what there is no plan, with reasons;
- `estimates` guess rows and bytes from what footers tell;
- `explain` writes a plan for people, `serialize` for workers.
"""
