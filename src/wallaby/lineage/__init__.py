"""The paper as code: names, records, Algorithm 1, Algorithm 2 and the invariants, without any I/O.

Read in this order: `names`, `graph`, `lineage` (what a record is), `attempt` (Algorithm 1), `reconcile`
(Algorithm 2), `invariants`. The pure decisions that the two algorithms ask for stand beside them: `choose`
(which inputs a task takes), `inbox` and `outbox` (what may be accepted and what is to be sent).
"""
