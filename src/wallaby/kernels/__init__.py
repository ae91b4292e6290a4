"""Kernels: pure steps on Arrow data. What a channel computes, without knowing of lineage or network.

`kernel` runs a stage's fragment step by step; `scan` reads Parquet; `sql` turns the typed trees into DuckDB's
SQL, and says what it cannot turn exactly; `partition` cuts batches by the hash of keys; `checksum` says whether
two outputs are the same. Every one of them gives the same bytes for the same input, whatever the machine does
beside it.
"""
