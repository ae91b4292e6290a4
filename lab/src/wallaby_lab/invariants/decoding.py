"""Decode records for the checks, each once: a record is a value, and several checks look at the same one."""

from __future__ import annotations

from functools import lru_cache

from wallaby.lineage.lineage import LineageRecord, decode

#: More than the records between the commit of one and the last check that looks at it.
_RECENT = 256


@lru_cache(maxsize=_RECENT)
def decoded(data: bytes) -> LineageRecord:
    """The record of these bytes."""
    return decode(data)
