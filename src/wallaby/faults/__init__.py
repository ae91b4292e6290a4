"""The port for faults on purpose: orders that a test gives a real process, and how they strike there.

Nothing here runs unless `spark.wallaby.chaos.enabled` is set. It is the only place where the engine knows of tests.
"""
