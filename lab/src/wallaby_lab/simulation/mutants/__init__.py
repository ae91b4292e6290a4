"""Proof that the simulation can fail: deliberate mistakes in the protocol, which it must notice.

`catalogue` lists the mutants, `mutant` applies one from outside, `hunt` finds how many seeds each one needs.
Nothing here imports a module that a mutant changes, because the mutant must be applied before.
"""
