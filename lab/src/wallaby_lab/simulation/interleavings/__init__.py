"""Real workers whose threads are interleaved step by step, as a seed says.

The simulation drives the protocol's generators and models what performs their effects. Here that code itself runs:
loop, node, pools, group commits, pushes, backup, segment files, and the assembly of what arrives. `scheduler` lets one
thread at a time go on, line by line; `cluster` runs a small query on real nodes; `shelves` has threads at one backup.
"""
