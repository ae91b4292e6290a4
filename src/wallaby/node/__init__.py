"""A node: one process of the engine, a TaskManager or the head. Both run this code, and so does the simulation.

`session` is one query at one node, without I/O; `node` drives it on a `loop`; `perform` performs effects on the threads
of `pools`.
"""
