"""Regular expressions over texts with line breaks, and what RE2 cannot do. Patterns are written for Python already."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from wallaby.functions.exact.arrow_function import per_value
from wallaby.functions.java_regex import replacement
from wallaby.relations.types import BOOLEAN, INTEGER, STRING, array


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


_replacement: Final = lru_cache(maxsize=256)(replacement)


def matches(text: str, pattern: str) -> bool:
    """Is there a match anywhere?"""
    return _compiled(pattern).search(text) is not None


def extract(text: str, pattern: str, group: int) -> str:
    """A group of the first match; empty if there is none."""
    found = _compiled(pattern).search(text)
    return "" if found is None else found[group] or ""


def extract_all(text: str, pattern: str, group: int) -> list[str]:
    """A group of every match."""
    return [found[group] or "" for found in _compiled(pattern).finditer(text)]


def replace(text: str, pattern: str, by: str) -> str:
    """Every match replaced; `by` is in Java's form."""
    compiled = _compiled(pattern)
    parts = _replacement(by, compiled.groups)
    return compiled.sub(
        lambda found: "".join(part if isinstance(part, str) else found[part] or "" for part in parts), text
    )


def position(text: str, pattern: str) -> int:
    """Where the first match begins, counted from 1; 0 without one."""
    found = _compiled(pattern).search(text)
    return 0 if found is None else found.start() + 1


FUNCTIONS: Final = (
    per_value("wallaby_regexp_matches", (STRING, STRING), BOOLEAN, matches),
    per_value("wallaby_regexp_extract", (STRING, STRING, INTEGER), STRING, extract),
    per_value("wallaby_regexp_extract_all", (STRING, STRING, INTEGER), array(STRING), extract_all),
    per_value("wallaby_regexp_replace", (STRING, STRING, STRING), STRING, replace),
    per_value("wallaby_regexp_position", (STRING, STRING), INTEGER, position),
)
