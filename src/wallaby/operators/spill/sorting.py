"""Sort more rows than memory holds: divide them into ranges of their keys on disk, then sort range by range.

A sample of the rows determines the cuts, so that each range is about a portion. Then as many rows as fit in memory are
sorted at a time, each with DuckDB's sort key beside it: bytes that compare as the rows do. The rows that fall into one
range are written to a file as one batch. Finally each range is read, batch by batch, and sorted by itself, so only one
range is in memory. A range that turns out too large is divided again. A key that alone has more rows than a range needs
no sorting: its rows come in the order in which they were written. So equal keys take no more memory, however many there
are.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, zip_longest
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

from wallaby.batches.chunks import Chunks
from wallaby.batches.sizes import grouped, value_bytes
from wallaby.batches.stored import StoredBatches
from wallaby.errors import InternalError
from wallaby.operators.spill.parts import parts_for
from wallaby.relations.expression import columns_in
from wallaby.relations.relation import Sort
from wallaby.sql.types import arrow_schema, column_name
from wallaby.sql.words import identifier, names_of, text
from wallaby.statements.connection import DuckDbSession, KernelSettings
from wallaby.statements.relation import input_name
from wallaby.statements.window import sort_key_sql

_KEY: Final = "sort key"
_KEY_SQL: Final = identifier(_KEY)
_KEY_SCHEMA: Final = pa.schema([(_KEY, pa.binary())])
#: The most ranges at a time: a run writes a separate batch for each of them.
_RANGES_MAX: Final = 256
#: The average number of sampled rows per range: with it, few ranges are more than half as large again as wanted.
_SAMPLES_PER_RANGE: Final = 16


@dataclass(slots=True)
class _Range:
    """The rows whose keys are between two cuts; `equal`: they all have the same key."""

    file: StoredBatches
    equal: bool
    numbers: array[int] = field(default_factory=lambda: array("q"))
    count: int = 0
    size_bytes: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Write some rows, which are in order."""
        self.numbers.append(self.file.append(batch))
        self.count += batch.num_rows
        self.size_bytes += value_bytes((batch,))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch, as they were written."""
        return map(self.file.read, self.numbers)


class _Source(Protocol):
    """Rows that are to be sorted."""

    count: int
    size_bytes: int

    def sample(self, every: int, session: DuckDbSession) -> list[bytes]:
        """The keys of every n-th row, in order."""
        ...

    def groups(self, size_bytes: int) -> Iterator[pa.Table]:
        """The rows, in groups of about this size."""
        ...

    @property
    def key_sql(self) -> str:
        """The SQL of a row's key."""
        ...


class _Collected:
    """Rows as they came, without keys."""

    def __init__(self, sort: Sort, rows: Chunks, settings: KernelSettings) -> None:
        self._sort = sort
        self._rows = rows
        self._settings = settings
        self.count = sum(batch.num_rows for batch in rows.batches)
        self.size_bytes = rows.value_bytes

    def sample(self, every: int, session: DuckDbSession) -> list[bytes]:
        """See `_Source`."""
        used = sorted({i for key in self._sort.keys for i in columns_in(key.expression)})
        names = list(dict.fromkeys(map(column_name, used))) or self._rows.batches[0].schema.names[:1]
        taken: list[pa.RecordBatch] = []
        seen = at = 0
        row_bytes = max(self.size_bytes // max(self.count, 1), 1)
        for batch in self._rows.batches:
            taken.append(_every(batch.select(names), every, -at % every))
            at += batch.num_rows
            seen += batch.num_rows * row_bytes
            if seen >= self._settings.flow_bytes:
                self._rows.release()
                seen = 0
        self._rows.release()
        sql = _select((f"{self.key_sql} AS {_KEY_SQL}",))
        found = session.stream(sql, {input_name(0): pa.Table.from_batches(taken)}, _KEY_SCHEMA)
        return sorted(key for batch in found for key in batch.column(0).to_pylist())

    def groups(self, size_bytes: int) -> Iterator[pa.Table]:
        """See `_Source`."""
        return _tables(self._rows.groups(size_bytes), size_bytes)

    @property
    def key_sql(self) -> str:
        """See `_Source`."""
        return sort_key_sql(self._sort.keys)


class _Again:
    """A range that is too large to be sorted at once."""

    key_sql: Final = _KEY_SQL

    def __init__(self, rows: _Range) -> None:
        self._rows = rows
        self.count = rows.count
        self.size_bytes = rows.size_bytes

    def sample(self, every: int, session: DuckDbSession) -> list[bytes]:  # noqa: ARG002 - the keys are there
        """See `_Source`."""
        keys: list[bytes] = []
        at = 0
        for batch in self._rows.batches():
            keys += _every(batch.select([_KEY]), every, -at % every).column(0).to_pylist()
            at += batch.num_rows
        return sorted(keys)

    def groups(self, size_bytes: int) -> Iterator[pa.Table]:
        """See `_Source`."""
        return _tables(grouped(self._rows.batches(), size_bytes), size_bytes)


@dataclass(frozen=True, slots=True)
class ExternalSort:
    """Sorts the rows of one input."""

    sort: Sort
    #: How many of the first rows are wanted; None: all.
    reach: int | None
    settings: KernelSettings

    def run(self, session: DuckDbSession, rows: Chunks) -> Iterator[pa.RecordBatch]:
        """The rows in order."""
        if not rows.batches:
            return
        source = _Collected(self.sort, rows, self.settings)
        if source.size_bytes > self.settings.part_bytes:
            yield from self._sorted(session, source)
            return
        for table in source.groups(source.size_bytes):
            yield from self._ordered(session, table, source.key_sql)

    def _sorted(self, session: DuckDbSession, source: _Source) -> Iterator[pa.RecordBatch]:
        """The rows in order, by ranges."""
        if self.settings.temp_directory is None:
            raise InternalError("Ranges of a sort are on disk, but there is no directory for them.")
        cuts = self._cuts(session, source)
        file = StoredBatches(_with_key(arrow_schema(self.sort.columns)), self.settings.temp_directory)
        try:
            for part in self._divided(session, source, cuts, file):
                yield from self._range(session, part)
        finally:
            file.close()

    def _cuts(self, session: DuckDbSession, source: _Source) -> list[_Cut]:
        """The cuts: before a key, and also after it if it has more rows than a range, or is the only key."""
        ranges = min(max(source.size_bytes // self.settings.flow_bytes, 2), _RANGES_MAX)
        # All keys of a sample together are not more than what is processed at once.
        row_bytes = max(source.size_bytes // source.count, 1)
        wanted = min(_SAMPLES_PER_RANGE * ranges, max(self.settings.flow_bytes // row_bytes, ranges))
        keys = source.sample(max(source.count // wanted, 1), session)
        chosen = Counter(keys[at * len(keys) // ranges] for at in range(1, ranges))
        cuts: list[_Cut] = []
        for key, times in chosen.items():  # in the order of the keys, as they were counted
            cuts.append(_Cut(key, bisect_left, after_equal=False))
            if times > 1 or len(chosen) == 1:
                cuts.append(_Cut(key, bisect_right, after_equal=True))
        return cuts

    def _divided(
        self, session: DuckDbSession, source: _Source, cuts: Sequence[_Cut], file: StoredBatches
    ) -> list[_Range]:
        """Divide all rows, or those that may be wanted, into ranges: one before each cut, and the rest."""
        ranges = [_Range(file, cut.after_equal) for cut in cuts]
        ranges.append(_Range(file, equal=False))
        for table in source.groups(self.settings.part_bytes):
            end = cuts[len(ranges) - 1] if len(ranges) <= len(cuts) else None
            for batch in self._ordered(session, table, source.key_sql, end, keyed=True):
                _spread(batch, ranges, cuts)
            ranges = self._wanted(ranges)
        return ranges

    def _wanted(self, ranges: list[_Range]) -> list[_Range]:
        """Drop the ranges from which no row is wanted, because enough rows come before."""
        if self.reach is None:
            return ranges
        reached = list(accumulate(part.count for part in ranges))
        return ranges[: bisect_left(reached, self.reach) + 1]

    def _range(self, session: DuckDbSession, part: _Range) -> Iterator[pa.RecordBatch]:
        """The rows of a range, in order."""
        if part.equal or part.count <= 1:
            yield from (batch.drop_columns([_KEY]) for batch in part.batches())
        elif part.size_bytes > max(self.settings.part_bytes, 2 * self.settings.flow_bytes):
            yield from self._sorted(session, _Again(part))
        else:
            table = pa.Table.from_batches(part.batches())
            yield from self._ordered(session, table, _KEY_SQL)

    def _ordered(
        self,
        session: DuckDbSession,
        table: pa.Table,
        key_sql: str,
        end: _Cut | None = None,
        *,
        keyed: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Sort rows at once, those before a cut; `keyed`: with their keys in the last column.

        DuckDB is not given a limit: with one, it would keep the first rows in memory, several times, and could not
        spill them.
        """
        listed, schema, order = names_of(self.sort.columns), arrow_schema(self.sort.columns), key_sql
        if keyed:
            listed, schema, order = [*listed, f"{key_sql} AS {_KEY_SQL}"], _with_key(schema), _KEY_SQL
        where = "" if end is None else f" WHERE {key_sql} {end.before_sql}"
        sql = f"{_select(listed)}{where} ORDER BY {order}"
        return session.stream(sql, {input_name(0): table}, schema)


class _Keys(Sequence[bytes]):
    """The keys of a batch, each of which is decoded only when it is compared."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._keys = batch.column(batch.num_columns - 1)

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, at: int) -> bytes:  # type: ignore[override]  # no slices
        key: bytes = self._keys[at].as_py()
        return key


@dataclass(frozen=True, slots=True)
class _Cut:
    """A cut between keys: before all rows that equal a key, or after them."""

    key: bytes
    find: Callable[[_Keys, bytes, int], int]
    #: Do the rows between the cut before and this one all have the same key?
    after_equal: bool

    @property
    def before_sql(self) -> str:
        """The condition that a key is before the cut."""
        return f"{'<=' if self.after_equal else '<'} unhex({text(self.key.hex())})"


def _spread(batch: pa.RecordBatch, ranges: Sequence[_Range], cuts: Sequence[_Cut]) -> None:
    """Write sorted rows to their ranges."""
    keys, begin = _Keys(batch), 0
    for part, cut in zip_longest(ranges, cuts[: len(ranges)]):
        end = len(keys) if cut is None else cut.find(keys, cut.key, begin)
        if begin < end:
            part.add(batch.slice(begin, end - begin))
        begin = end


def _tables(groups: Iterable[Sequence[pa.RecordBatch]], size_bytes: int) -> Iterator[pa.Table]:
    """Each group as a table; a group that exceeds the size, because it is a single large batch, as several."""
    for group in groups:
        table = pa.Table.from_batches(group)
        length = -(-table.num_rows // parts_for(value_bytes(group), size_bytes))
        yield from (table.slice(at, length) for at in range(0, table.num_rows, max(length, 1)))


def _every(batch: pa.RecordBatch, every: int, first: int) -> pa.RecordBatch:
    """Every n-th row of a batch, from an offset."""
    return batch.take(pa.array(np.arange(first, batch.num_rows, every)))


def _with_key(schema: pa.Schema) -> pa.Schema:
    return schema.append(_KEY_SCHEMA.field(0))


def _select(listed: Sequence[str]) -> str:
    return f"SELECT {', '.join(listed)} FROM {identifier(input_name(0))}"  # noqa: S608 - from typed trees
