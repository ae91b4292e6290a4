"""Casts between types."""
