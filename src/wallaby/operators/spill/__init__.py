"""Operators over more rows than memory holds: what they put on disk, and in which parts they take it up again."""
