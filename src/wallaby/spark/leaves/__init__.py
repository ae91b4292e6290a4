"""Spark leaves: parts of a query that Spark runs first, and whose rows the TaskManagers then read."""
