"""The inner side of the port for tests: orders for faults that a test gives a real process, and how they strike there.

Nothing here runs unless `spark.wallaby.chaos.enabled` is set. The outer side is `wallaby.inspection`, which shows what
happened. Nowhere else does the engine know about tests.
"""
