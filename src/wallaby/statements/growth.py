"""Take only as many rows as there is room for the results of functions, before the functions run.

DuckDB computes a function for a whole vector of rows at once, so the results of `replace`, `sequence` and the like for
too many rows exist before their size can be checked. But the sizes of their arguments determine it. They are computed
first, by a statement that makes numbers only (`sizing.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wallaby.errors import REPORT_IT, STEP_FAILED, KernelError, MemoryLimitError, QueryError
from wallaby.functions.size import varies
from wallaby.functions.spread import Spread, Spreads, grows
from wallaby.relations.expression import columns_in
from wallaby.relations.relation import Aggregate, Filter, Input, Project, Relation, children_of
from wallaby.relations.tree import expressions_of
from wallaby.sql.types import arrow_schema
from wallaby.sql.words import column_identifier, identifier
from wallaby.statements.connection import OVER_PORTIONS, KernelSettings, grown_bytes_max, thread_session
from wallaby.statements.expression import output_sql
from wallaby.statements.ordinary import OrdinaryGrowth
from wallaby.statements.relation import input_name, inputs_of, relation_sql
from wallaby.statements.sizing import GrowingResult, Sizing

#: Rows of whose results nothing is known are taken so many at a time.
_UNKNOWN_ROWS: Final = 8
#: More values, of 16 bytes each, than a JVM array can have: no memory helps, and Spark reports the error.
_JVM_BYTES_MAX: Final = (1 << 31) * 16


def tree_grows(tree: Relation) -> bool:
    """Can a function in a tree give much more than it is given?"""
    found = _Spread()
    found.of(tree)
    return found.grows


class _Spread:
    """The sizes of a tree's columns, in terms of those that it takes, and whether any of them may be much larger."""

    def __init__(self) -> None:
        self.grows = False

    def of(self, relation: Relation) -> dict[int, Spread | None]:
        """The sizes of a relation's columns, as far as projections make them."""
        known: dict[int, Spread | None] = {}
        for child in children_of(relation):
            known |= self.of(child)
        self.grows = self.grows or any(grows(expression, known) for expression in expressions_of(relation))
        if isinstance(relation, Project):
            return {named.column.id: Spreads(known).of(named.expression) for named in relation.outputs}
        return {} if isinstance(relation, Aggregate) else known


def is_row_by_row(relation: Relation) -> bool:
    """Does a tree compute each row of its only input by itself?"""
    match relation:
        case Input():
            return True
        case Filter() | Project():
            return is_row_by_row(relation.child)
        case _:
            return False


@dataclass(frozen=True, slots=True)
class Weights:
    """For each row: the most bytes that its functions take, and how many they make for certain."""

    most: npt.NDArray[np.float64]
    sure: npt.NDArray[np.float64]

    def rows_within(self, at: int, length: int, limit_bytes: int, settings: KernelSettings) -> int:
        """How many of some rows make no more than there is room for; at least one."""
        if self.sure[at] > _JVM_BYTES_MAX:
            raise KernelError(
                STEP_FAILED, fix=REPORT_IT, detail=f"a row would make {int(self.sure[at])} bytes"
            )
        if self.sure[at] > grown_bytes_max(settings):
            raise MemoryLimitError(
                f"A single row produces text or an array of {int(self.sure[at]) >> 20} MiB.",
                fix="Raise spark.wallaby.memory.",
                memory_bytes=settings.memory_bytes,
            )
        reached = np.cumsum(self.most[at : at + length])
        return max(int(np.searchsorted(reached, limit_bytes, side="right")), 1)


class Growth:
    """The results of growing functions for the rows of an input, through the filters and projections over it."""

    def __init__(self, tree: Relation, number: int, settings: KernelSettings) -> None:
        self._settings = settings
        self._number = number
        self._sql: str | None = None
        self._some_unknown = False
        self._ordinary: OrdinaryGrowth | None = None
        feet = [source for source in inputs_of(tree) if source.number == number]
        if len(feet) == 1:
            path = path_above(tree, number)
            self._ordinary = OrdinaryGrowth(feet[0], path)
            self._schema = arrow_schema(feet[0].columns)
            self._sql = self._weighing(feet[0], path) if tree_grows(tree) else None

    def weigh(self, rows: Sequence[pa.RecordBatch]) -> Weights | None:
        """The sizes for each row; None if nothing grows and no row is wide, or if they cannot be computed."""
        grown = self._grown(rows)
        if self._ordinary is None:
            return grown
        ordinary = self._ordinary.weigh(rows, OVER_PORTIONS * self._settings.portion_bytes)
        if ordinary is None:
            return grown
        if grown is None:
            return Weights(ordinary, np.zeros(len(ordinary)))
        return replace(grown, most=grown.most + ordinary)

    def _grown(self, rows: Sequence[pa.RecordBatch]) -> Weights | None:
        """The sizes of what growing functions make."""
        if self._sql is None:
            return None
        table = pa.Table.from_batches(rows, self._schema)
        try:
            made = thread_session(self._settings).query(self._sql, {input_name(self._number): table})
        except MemoryLimitError:
            unknown = np.full(table.num_rows, float(self._settings.portion_bytes // _UNKNOWN_ROWS))
            return Weights(unknown, np.zeros(table.num_rows))
        except (
            QueryError
        ):  # perhaps for a row that a filter would drop: the real computation will raise the error if not
            return None
        most, sure = (np.asarray(made.column(place).to_numpy(), np.float64) for place in range(2))
        if self._some_unknown:
            most = np.maximum(most, self._settings.portion_bytes // _UNKNOWN_ROWS)
        return Weights(most, sure)

    def _weighing(self, foot: Input, path: Sequence[Relation]) -> str | None:
        """A statement over the input that gives the sizes: one level of it for each projection."""
        known: dict[int, Spread | None] = {}
        sized: dict[int, str] = {}
        sums = _Sums()
        sql = relation_sql(foot)
        columns = {column.id for column in foot.columns}
        always, level = True, 0
        for relation in path:
            always = always and not isinstance(relation, Filter)
            sizing = Sizing(known, sized)
            for expression in expressions_of(relation):
                if not columns_in(expression) <= columns:
                    self._some_unknown |= grows(expression, known)
                    continue
                for result in sizing.results(expression, always=always):
                    if result.measure is None:
                        self._some_unknown = True
                        continue
                    sums.add(result)
            if isinstance(relation, Project):
                outputs = [f"{sql} AS {word}{level}" for word, sql in sums.shown().items()]
                outputs += [f"{word}{before}" for before in range(level) for word in sums.parts]
                known, sized, columns, shown = self._through(relation, known, sizing)
                sql = f"SELECT {', '.join((*outputs, *shown))} FROM ({sql}) AS t"  # noqa: S608 - from typed trees
                sums, level = _Sums(), level + 1
        if not self._some_unknown and not level and not sums.parts["most"]:
            return None
        for word, parts in sums.parts.items():
            parts += [f"{word}{before}" for before in range(level)]
        totals = (f"CAST({sql} AS DOUBLE)" for sql in sums.shown().values())
        return f"SELECT {', '.join(totals)} FROM ({sql}) AS t"  # noqa: S608 - from typed trees

    def _through(
        self, project: Project, known: dict[int, Spread | None], sizing: Sizing
    ) -> tuple[dict[int, Spread | None], dict[int, str], set[int], list[str]]:
        """The columns of a projection: their values where they are small, otherwise their sizes."""
        spreads: dict[int, Spread | None] = {}
        sizes: dict[int, str] = {}
        columns: set[int] = set()
        shown: dict[int, str] = {}
        for named in project.outputs:
            column, expression = named.column, named.expression
            if column.id in columns:
                continue
            spreads[column.id] = Spreads(known).of(expression)
            if sizing.is_computed(expression):
                shown[column.id] = f"{output_sql(expression)} AS {column_identifier(column.id)}"
                columns.add(column.id)
                continue
            size = sizing.size(expression) if varies(expression.type) else None
            if size is None:
                continue  # what is made of this column is not known
            name = identifier(f"size{column.id}")
            shown[column.id] = f"CAST({size.sql} AS DOUBLE) AS {name}"
            sizes[column.id] = name
            columns.add(column.id)
        return spreads, sizes, columns, list(shown.values())


class _Sums:
    """The terms of the sums that `Weights` has, by its fields."""

    def __init__(self) -> None:
        self.parts: dict[str, list[str]] = {"most": [], "sure": []}

    def add(self, result: GrowingResult) -> None:
        """Add what a call makes."""
        assert result.measure is not None, "what is unknown is not added"
        self.parts["most"].append(f"{result.measure.sql} * {result.times}")
        if result.measure.is_exact and result.always:
            self.parts["sure"].append(result.measure.sql)

    def shown(self) -> dict[str, str]:
        """The sums as SQL."""
        return {word: " + ".join(parts) or "0" for word, parts in self.parts.items()}


def path_above(tree: Relation, number: int) -> list[Relation]:
    """From an input upwards: the filters and projections over it, and the relation that uses their rows."""
    path: list[Relation] = []

    def climb(relation: Relation) -> bool:
        """Does a relation belong to the path?"""
        if isinstance(relation, Input):
            return relation.number == number
        below = [climb(child) for child in children_of(relation)]
        if any(below):
            path.append(relation)
        return any(below) and isinstance(relation, Filter | Project)

    climb(tree)
    return path
