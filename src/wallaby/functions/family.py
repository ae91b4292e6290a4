"""A family of functions: the declarations of one file. The registry combines all families."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from wallaby.functions.aggregate_sql import AggregateSql
from wallaby.functions.arrow_function import ArrowFunction
from wallaby.functions.entry import Entry
from wallaby.functions.scalar_sql import ScalarSql


@dataclass(frozen=True, slots=True)
class Family:
    """Functions that belong together."""

    #: The heading under which `docs/compatibility.md` lists them; several families may share one.
    title: str
    entries: tuple[Entry, ...]
    #: Functions without a class in Catalyst: builders of entries and the planner make them.
    also: Mapping[str, ScalarSql] = field(default_factory=dict)
    also_aggregates: Mapping[str, AggregateSql] = field(default_factory=dict)
    #: Python functions over Arrow arrays, by whose names the SQL calls them.
    arrow_functions: tuple[ArrowFunction, ...] = ()
