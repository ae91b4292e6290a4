"""Aggregate functions, and what Catalyst puts around them."""
