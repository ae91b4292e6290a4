"""Spark's side of planning: the driver's JVM writes down an optimized plan, whose nodes become data here."""
