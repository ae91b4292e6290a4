"""Spark's front end, read: Catalyst's optimized plan in, our relational tree out, or the reasons why not."""

from wallaby.catalyst.jvm import warm_up
from wallaby.catalyst.reader import ReadResult, read_plan
from wallaby.catalyst.text import format_relation

__all__ = ["ReadResult", "format_relation", "read_plan", "warm_up"]
