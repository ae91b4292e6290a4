"""Hosting on Spark: TaskManagers that live in Spark's executors, as single-task jobs."""
