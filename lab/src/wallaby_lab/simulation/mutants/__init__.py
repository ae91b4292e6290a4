"""Proof that the simulation can fail: mistakes put into the protocol on purpose, which it must notice.

`catalogue` lists the mutants, `mutant` applies one from outside, `hunt` finds how many seeds each one needs.
Nothing here imports a module that a mutant changes: a mutant must come before it.
"""
