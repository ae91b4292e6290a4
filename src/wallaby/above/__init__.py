"""Spark above: rows that stay in the TaskManagers as parts of Spark's own plans, and which parts of them run here."""
