"""Wallaby below Spark: TaskManagers run parts of Spark's plans, and Spark's tasks read the rows of those parts."""
