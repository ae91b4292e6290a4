"""The port for injected faults: orders that a test gives a real process, and how they strike there.

Nothing here runs unless `spark.wallaby.chaos.enabled` is set. It is the only place where the engine knows about tests.
"""
