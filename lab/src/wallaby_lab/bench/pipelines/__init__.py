"""Pipelines: what runs below Spark's own plans, how fast its rows get there, and what it costs other queries."""
