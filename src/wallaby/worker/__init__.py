"""The worker's side: a TaskManager keeps its lease and opens a session for each query that it serves.

Everything here is a generator of effects over pure data, like the algorithms in `lineage`: whoever drives it
owns the threads, sockets and clocks.
"""
