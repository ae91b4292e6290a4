"""What functions that give little more than they are given make of wide rows.

Of ordinary rows such functions make some megabytes for a vector, whatever they are, so nothing is computed for them
(`size.TIMES_MAX`). But a vector of 2,048 texts of 20 kB has 40 MB, and `split` may make seventeen times that of it,
which DuckDB neither counts nor spills. So the sizes of the rows, which are known, are multiplied by what the tree's
functions make of each column. That costs less than a statement, and takes effect only where rows are wide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wallaby.batches.sizes import sizes_of_values, value_bytes
from wallaby.functions.size import TIMES_MAX, held_times
from wallaby.functions.spread import Spread, Spreads
from wallaby.relations.relation import Input, Project, Relation
from wallaby.relations.tree import expressions_of

#: The rows that DuckDB computes at once.
_VECTOR_ROWS: Final = 2048


def multiples(path: Sequence[Relation]) -> dict[int, float]:
    """How many times the size of each column the ordinary functions on a path make in total, intermediate results too.

    The path leads upwards from the input that has the columns.
    """
    times: dict[int, float] = {}
    known: dict[int, Spread | None] = {}
    for relation in path:
        found = Spreads(known)
        made = [found.of(expression) for expression in expressions_of(relation)]
        for call, spread in found.ordinary:
            by = held_times(call)
            for column, own in spread.times.items():
                times[column] = times.get(column, 0) + own * by
        if isinstance(relation, Project):
            known = {named.column.id: one for named, one in zip(relation.outputs, made, strict=True)}
    return times


def makes_arrays(path: Sequence[Relation]) -> bool:
    """May an ordinary function make arrays that are many times as large as its columns?"""
    return max(multiples(path).values(), default=0) > TIMES_MAX


class OrdinaryGrowth:
    """What the ordinary functions of a tree make of the rows of an input."""

    def __init__(self, foot: Input, path: Sequence[Relation]) -> None:
        """The path leads upwards from the input."""
        times = multiples(path)
        self._times = [(place, times[c.id]) for place, c in enumerate(foot.columns) if times.get(c.id)]

    def weigh(self, rows: Sequence[pa.RecordBatch], limit_bytes: int) -> npt.NDArray[np.float64] | None:
        """The size for each row; None if no vector makes more than the limit."""
        most = sum(by * value_bytes((batch.select([at]),)) for at, by in self._times for batch in rows)
        if most <= limit_bytes:
            return None
        sizes = np.concatenate([self._of(batch) for batch in rows])
        reached = np.concatenate(([0.0], np.cumsum(sizes)))
        length = min(_VECTOR_ROWS, len(sizes))
        return sizes if np.max(reached[length:] - reached[:-length]) > limit_bytes else None

    def _of(self, batch: pa.RecordBatch) -> npt.NDArray[np.float64]:
        sizes = np.zeros(batch.num_rows)
        for place, by in self._times:
            sizes += by * sizes_of_values(batch.column(place))
        return sizes
