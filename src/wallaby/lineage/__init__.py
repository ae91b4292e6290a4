"""The paper as code: names, records, Algorithm 1 and Algorithm 2, without any I/O.

Read in this order: `names`, `graph`, `lineage` (what a record is), `attempt` (Algorithm 1), `reconcile`
(Algorithm 2). The pure decisions that the two algorithms need are beside them: `choose` (which inputs a task
takes), `inbox` and `outbox` (what may be accepted and what is to be sent), `tolerance` and `recoverable` (what outlives
a worker). The invariants, as code, are in the lab: `wallaby_lab.invariants`.
"""
