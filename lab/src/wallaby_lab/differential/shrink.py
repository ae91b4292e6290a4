"""Reduce a difference: remove parts of the query, and rows and columns of the tables.

A smaller case is kept if it still differs, as long as there are trials left.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from wallaby_lab.differential.generated.schemas import RandomTable
from wallaby_lab.differential.syntax import Piece, smaller


@dataclass(frozen=True, slots=True)
class Case:
    """A query over tables."""

    query: Piece
    tables: tuple[RandomTable, ...]


def shrink(case: Case, still_different: Callable[[Case], bool], trials: int) -> Case:
    """Find a smaller case that still differs, within a number of trials."""
    left = trials
    found = True
    while found and left > 0:
        found = False
        for candidate in _smaller(case):
            if left <= 0:
                break
            left -= 1
            if still_different(candidate):
                case, found = candidate, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    for table in case.tables:
        if not _names(case.query, table.name):
            yield _without(case, table)
    for query in smaller(case.query):
        yield replace(case, query=query)
    for table in case.tables:
        for rows in _fewer(table.rows):
            yield _with(case, table, replace(table, rows=rows))
    for table in case.tables:
        for place, field in enumerate(table.fields):
            if not _names(case.query, field.name) and len(table.fields) > 1:
                fields = table.fields[:place] + table.fields[place + 1 :]
                rows = tuple(row[:place] + row[place + 1 :] for row in table.rows)
                yield _with(case, table, replace(table, fields=fields, rows=rows))


def _names(query: Piece, name: str) -> bool:
    return re.search(rf"\b{name}\b", str(query)) is not None


def _fewer(rows: tuple[tuple[Any, ...], ...]) -> Iterator[tuple[tuple[Any, ...], ...]]:
    """Remove halves, quarters, and so on down to single rows."""
    size = len(rows)
    step = (size + 1) // 2
    while step >= 1 and size:
        for begin in range(0, size, step):
            yield rows[:begin] + rows[begin + step :]
        step = step // 2


def _with(case: Case, table: RandomTable, other: RandomTable) -> Case:
    return replace(case, tables=tuple(other if one is table else one for one in case.tables))


def _without(case: Case, table: RandomTable) -> Case:
    return replace(case, tables=tuple(one for one in case.tables if one is not table))
