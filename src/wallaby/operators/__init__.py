"""Operators: pure steps on Arrow data. They compute what a channel computes, and know neither lineage nor network.

`kernel` runs a stage's fragment step by step, and `scan_kernel` one that reads splits; `program` lets rows flow through
a tree in portions; `joins` has indexed build sides, and `spill` handles rows that exceed memory. All of them give the
same bytes for the same input, whatever else the machine does.
"""
