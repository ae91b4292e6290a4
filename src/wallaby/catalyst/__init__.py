"""Spark's side of planning: the driver's JVM is asked to write an optimized plan down, and its nodes as data."""
