"""A deterministic simulation that runs the real protocol code and tries to break it.

The generators of `lineage`, `node`, `worker` and `coordinator` run unchanged under a virtual clock, over a simulated
network, disk and control store. A seed draws a query, its settings and a schedule of faults, each of which strikes at a
named fail point; after every step the invariants are checked, and at the end the result is compared with an answer that
is computed independently. The same seed always gives the same run.
"""
