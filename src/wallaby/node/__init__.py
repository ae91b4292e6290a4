"""A node: one process of the engine, a TaskManager or the head. What both run, and what the simulation runs too.

`session` is one query at one node, without I/O; `node` drives it on a `loop`; `perform` carries effects out on the
threads of `pools`.
"""
