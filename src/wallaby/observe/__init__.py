"""Observe queries: events, their log, progress while a query runs, and the report of a log."""
