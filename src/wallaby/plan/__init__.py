"""Planning: from a relational tree to a stage graph with what each stage computes. Pure: no I/O, no clock.

`reading` turns a query into the frozen trees of `relations`; planning turns those into a `physical` plan, which
`operators` run. In between:

- `planner.plan(relation, statistics, settings)` applies the `rules` and cuts the tree into stages, with `joins`,
  `aggregation` and `open_stage`; `unplannable` gives the reasons why a relation has no plan;
- `estimates` guess rows and bytes from file footers;
- `explain` writes a plan for people, `serialize` for workers.
"""
