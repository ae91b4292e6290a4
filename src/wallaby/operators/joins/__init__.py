"""Build sides of joins: indexed once, probed by every batch."""
