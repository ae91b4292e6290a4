"""Operators: pure steps on Arrow data. What a channel computes, without knowing of lineage or network.

`kernel` runs a stage's fragment step by step and `scan_kernel` one that reads splits; `program` lets rows flow through
a tree in portions; `joins` has indexed build sides, `spill` what exceeds memory. Every one of them gives the same bytes
for the same input, whatever the machine does beside it.
"""
