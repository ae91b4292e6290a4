"""Estimates: how many rows and bytes a relation gives, from the footers of its tables."""
