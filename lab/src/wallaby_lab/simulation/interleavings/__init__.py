"""Real workers whose threads are interleaved step by step, determined by a seed.

The simulation drives the protocol's generators and models how their effects are performed. Interleavings run the code
that performs them: loop, node, pools, group commits, pushes, backup, segment files, and the assembly of pushes.
`scheduler` lets one thread at a time run, line by line; `cluster` runs a small query on real nodes; `backup_threads`
runs threads at one backup.
"""
