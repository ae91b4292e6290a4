"""The expression registry: for each expression class of Catalyst's, which function of ours it is, and how exactly.

One file per family. What has no entry is refused by name, so a new version of Spark can bring no surprise.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from wallaby.functions.catalyst import (
    aggregates,
    arithmetic,
    casts,
    collections,
    conditionals,
    date_text,
    dates,
    hashes,
    intervals,
    invocations,
    mathematics,
    patterns,
    predicates,
    strings,
    timestamps,
    wrappers,
)
from wallaby.functions.catalyst.entry import Entry

FAMILIES: Final = MappingProxyType(
    {
        "Arithmetic": arithmetic.ENTRIES,
        "Mathematics": mathematics.ENTRIES,
        "Comparisons and logic": predicates.ENTRIES,
        "Conditions": conditionals.ENTRIES,
        "Casts": casts.ENTRIES,
        "Text": strings.ENTRIES,
        "Regular expressions": patterns.ENTRIES,
        "Hashes and encodings": hashes.ENTRIES,
        "Methods of Java's": invocations.ENTRIES,
        "Dates": dates.ENTRIES,
        "Timestamps": timestamps.ENTRIES,
        "Dates and times as text": date_text.ENTRIES,
        "Intervals": intervals.ENTRIES,
        "Arrays, structs and maps": collections.ENTRIES,
        "Aggregates": aggregates.ENTRIES,
        "Others": wrappers.ENTRIES,
    }
)

#: By the name of Catalyst's class.
REGISTRY: Final = MappingProxyType(
    {entry.catalyst: aggregates.in_any_order(entry) for family in FAMILIES.values() for entry in family}
)


#: What builders of entries make beside the entry's own function. `ne` is Catalyst's Not around an EqualTo.
_FURTHER: Final = frozenset(
    {
        "ne",
        "timestamp_add_months",
        "timestamp_add_time",
        "interval_to_number",
        "sketch_place",
        "sketch_estimate",
        *timestamps.TEMPORAL_CASTS.values(),
    }
)


def scalar_functions() -> frozenset[str]:
    """The names that `Call.function` can have: what kernels must know."""
    return _functions() - aggregate_functions()


def aggregate_functions() -> frozenset[str]:
    """The names that `Aggregation.function` can have."""
    return frozenset(entry.function for entry in aggregates.ENTRIES if entry.function)


def _functions() -> frozenset[str]:
    return frozenset(entry.function for entry in REGISTRY.values() if entry.function) | _FURTHER


def entry_for(name: str) -> Entry | None:
    """The entry for a class of Catalyst's."""
    return REGISTRY.get(name)
