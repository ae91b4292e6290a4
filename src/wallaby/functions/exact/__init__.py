"""Exact functions that DuckDB lacks, given to it as Python functions over Arrow arrays; a file per family."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Final

import duckdb

from wallaby.functions.exact import (
    decimals,
    doubts,
    floating_text,
    hashes,
    moments,
    number_formats,
    numbers,
    parsing,
    patterns,
    sketches,
    strict_math,
    text,
    times,
)
from wallaby.functions.exact.arrow_function import ArrowFunction

ALL: Final[tuple[ArrowFunction, ...]] = (
    *decimals.FUNCTIONS,
    *doubts.FUNCTIONS,
    *floating_text.FUNCTIONS,
    *hashes.FUNCTIONS,
    *moments.FUNCTIONS,
    *number_formats.FUNCTIONS,
    *numbers.FUNCTIONS,
    *parsing.FUNCTIONS,
    *patterns.FUNCTIONS,
    *sketches.FUNCTIONS,
    *strict_math.FUNCTIONS,
    *text.FUNCTIONS,
    *times.FUNCTIONS,
)


#: By name; all begin with the same word.
BY_NAME: Final = MappingProxyType({function.name: function for function in ALL})
_NAMES: Final = re.compile(r"\bwallaby_\w+")


def register(connection: duckdb.DuckDBPyConnection, sql: str, known: set[str]) -> None:
    """Give a connection those that a statement names, and that it does not know yet: each costs a millisecond."""
    for name in dict.fromkeys(_NAMES.findall(sql)):
        if name in BY_NAME and name not in known:
            BY_NAME[name].register(connection)
            known.add(name)
