"""The invariants of docs/protocol.md as code, for the simulation and for `wallaby chaos`.

They share no code with the algorithms that they check: `audit` follows a query from its submission to its end, and
`smallest` computes independently what a loss requires.
"""
