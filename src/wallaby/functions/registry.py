"""The registry of functions: all families and their declarations, by name.

An expression without an entry is refused by name, so a new version of Spark brings no surprises. A new file of
functions only has to be added to `ALL_FAMILIES`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import duckdb

from wallaby.functions.aggregate_sql import (
    AGGREGATES,
    AggregateSql,
    aggregation_parts,
    aggregation_reason,
    aggregation_sql,
)
from wallaby.functions.aggregates import collected, distinct_estimate, ordered, percentiles, statistics, sums
from wallaby.functions.aggregates import wrappers as aggregates_wrappers
from wallaby.functions.casts import casts, nested_text
from wallaby.functions.entry import Entry
from wallaby.functions.logic import comparisons, conditions
from wallaby.functions.nested import arrays, elements, lambdas, maps, searching
from wallaby.functions.numbers import arithmetic, bits, mathematics, number_text, rounding
from wallaby.functions.others import java_methods
from wallaby.functions.others import wrappers as others_wrappers
from wallaby.functions.scalar_sql import SCALARS, ScalarSql, fallible, fine, of_kinds
from wallaby.functions.text import (
    composed,
    encodings,
    hashes,
    json_text,
    letters,
    like,
    number_formats,
    parts,
    patterns,
    urls,
)
from wallaby.functions.times import (
    clock_parts,
    date_text,
    dates,
    intervals,
    temporal_casts,
    timestamp_arithmetic,
    timestamps,
)

#: Names for other rooms; importing them from here makes sure that all families are loaded.
__all__ = [
    "AGGREGATES",
    "ALL_FAMILIES",
    "ARROW_FUNCTIONS",
    "DOUBTFUL_FUNCTIONS",
    "FAMILIES",
    "REGISTRY",
    "SCALARS",
    "aggregation_parts",
    "aggregation_reason",
    "aggregation_sql",
    "entry_for",
    "fallible",
    "register",
]

#: In the order in which documents list them.
ALL_FAMILIES: Final = (
    arithmetic.FAMILY,
    rounding.FAMILY,
    bits.FAMILY,
    mathematics.FAMILY,
    number_text.FAMILY,
    comparisons.FAMILY,
    conditions.FAMILY,
    casts.FAMILY,
    nested_text.FAMILY,
    letters.FAMILY,
    parts.FAMILY,
    composed.FAMILY,
    like.FAMILY,
    number_formats.FAMILY,
    json_text.FAMILY,
    patterns.FAMILY,
    hashes.FAMILY,
    encodings.FAMILY,
    urls.FAMILY,
    java_methods.FAMILY,
    dates.FAMILY,
    clock_parts.FAMILY,
    timestamp_arithmetic.FAMILY,
    timestamps.FAMILY,
    temporal_casts.FAMILY,
    date_text.FAMILY,
    intervals.FAMILY,
    elements.FAMILY,
    searching.FAMILY,
    arrays.FAMILY,
    maps.FAMILY,
    lambdas.FAMILY,
    sums.FAMILY,
    aggregates_wrappers.FAMILY,
    statistics.FAMILY,
    percentiles.FAMILY,
    ordered.FAMILY,
    collected.FAMILY,
    distinct_estimate.FAMILY,
    others_wrappers.FAMILY,
)
#: The heading for entries that are calls of Java methods, in any family.
_METHODS: Final = "Methods of Java's"
_NAMES: Final = re.compile(r"\bwallaby_\w+")


def _by_title() -> dict[str, tuple[Entry, ...]]:
    """The entries under each heading."""
    found: dict[str, list[Entry]] = {}
    for family in ALL_FAMILIES:
        for entry in family.entries:
            title = _METHODS if "#" in entry.catalyst else family.title
            found.setdefault(title, []).append(entry)
    return {title: tuple(entries) for title, entries in found.items()}


def _scalars() -> dict[str, ScalarSql]:
    """How each scalar function is written; the kinds of its arguments come from its entry."""
    found: dict[str, ScalarSql] = {}
    for family in ALL_FAMILIES:
        declared = {e.function: e for e in family.entries if isinstance(e.sql, ScalarSql)}
        for name, sql in ((n, e.sql) for n, e in declared.items()):
            assert isinstance(sql, ScalarSql), "chosen above"
            takes = declared[name].takes
            kinds = of_kinds(*takes) if takes else fine
            found[name] = replace(sql, reason=sql.reason or kinds)
        found |= {name: replace(sql, reason=sql.reason or fine) for name, sql in family.also.items()}
    return found


def _aggregates() -> dict[str, AggregateSql]:
    found: dict[str, AggregateSql] = {}
    for family in ALL_FAMILIES:
        found |= {e.function: e.sql for e in family.entries if isinstance(e.sql, AggregateSql)}
        found |= family.also_aggregates
    return found


SCALARS.update(_scalars())
AGGREGATES.update(_aggregates())
#: The functions that may meet a value that only Spark computes; `plan/doubt.py` explains what happens then.
DOUBTFUL_FUNCTIONS: Final = frozenset(name for name, sql in SCALARS.items() if sql.doubtful)
#: By the heading of documents.
FAMILIES: Final = MappingProxyType(_by_title())
#: By the name of Catalyst's class.
REGISTRY: Final = MappingProxyType(
    {entry.catalyst: collected.in_any_order(entry) for family in ALL_FAMILIES for entry in family.entries}
)
#: By name; all names begin with the same word.
ARROW_FUNCTIONS: Final = MappingProxyType(
    {function.name: function for family in ALL_FAMILIES for function in family.arrow_functions}
)


def entry_for(name: str) -> Entry | None:
    """The entry for a class of Catalyst's."""
    return REGISTRY.get(name)


def register(connection: duckdb.DuckDBPyConnection, sql: str, known: set[str]) -> None:
    """Register with a connection the Arrow functions that a statement uses and the connection lacks.

    Each registration costs a millisecond.
    """
    for name in dict.fromkeys(_NAMES.findall(sql)):
        if name in ARROW_FUNCTIONS and name not in known:
            ARROW_FUNCTIONS[name].register(connection)
            known.add(name)
