"""Comparisons, logic and choices among values."""
