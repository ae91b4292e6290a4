"""The expression registry: for each expression class of Catalyst's, which function of ours it is, and how exactly.

One file per family. What has no entry is refused by name, so a new version of Spark can bring no surprise.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from wallaby.catalyst import (
    aggregates,
    arithmetic,
    casts,
    collections,
    conditionals,
    dates,
    hashes,
    invocations,
    mathematics,
    patterns,
    predicates,
    strings,
    wrappers,
)
from wallaby.catalyst.entry import Entry

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
        "Arrays, structs and maps": collections.ENTRIES,
        "Aggregates": aggregates.ENTRIES,
        "Others": wrappers.ENTRIES,
    }
)

#: By the name of Catalyst's class.
REGISTRY: Final = MappingProxyType(
    {entry.catalyst: entry for family in FAMILIES.values() for entry in family}
)


def scalar_functions() -> frozenset[str]:
    """The names that `Call.function` can have: what kernels must know."""
    return _functions() - aggregate_functions()


def aggregate_functions() -> frozenset[str]:
    """The names that `Aggregation.function` can have."""
    return frozenset(entry.function for entry in aggregates.ENTRIES if entry.function)


def _functions() -> frozenset[str]:
    # `ne` is Catalyst's Not around an EqualTo.
    return frozenset(entry.function for entry in REGISTRY.values() if entry.function) | {"ne"}


def entry_for(name: str) -> Entry | None:
    """The entry for a class of Catalyst's."""
    return REGISTRY.get(name)
