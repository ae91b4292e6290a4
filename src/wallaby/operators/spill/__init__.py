"""Operators over more rows than memory holds: what they write to disk, and in which parts they process it."""
