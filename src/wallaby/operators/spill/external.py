"""Run a chain of relations over more rows than memory holds: segment by segment, with the rows between on disk.

The chain is cut after every relation that needs all its rows. An aggregation or a window processes its rows in parts by
the hash of its keys, one part at a time; a sort by ranges of its keys; everything else streams. A part of a window that
is too large is computed portion by portion (`windows`), if its functions can be. If another group alone needs more than
memory, DuckDB refuses it, and the query ends with an error. How rows are divided depends only on their values and the
settings.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from wallaby.batches.chunks import Chunks, spooled
from wallaby.operators.spill.parts import cut_into_parts, parts_for
from wallaby.operators.spill.sorting import ExternalSort
from wallaby.operators.spill.windows import ExternalWindow, is_too_large
from wallaby.relations.expression import Column
from wallaby.relations.relation import (
    Aggregate,
    Expand,
    Filter,
    Input,
    Limit,
    Project,
    Relation,
    Single,
    Sort,
    Unnest,
    Window,
    children_of,
)
from wallaby.relations.tree import with_equal_children
from wallaby.sql.types import arrow_schema, column_name
from wallaby.statements.connection import DuckDbSession, KernelSettings
from wallaby.statements.divided_window import divided_window
from wallaby.statements.relation import input_name, relation_sql, result_columns
from wallaby.statements.widths import divided, rows_at_once, side_by_side


@dataclass(frozen=True, slots=True)
class _Grouped:
    """A segment that can be run in parts, if there are keys to divide its rows by."""

    tree: Relation
    keys: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Sorted:
    """A segment that sorts: all rows, or the first ones."""

    sort: Sort
    limit: Limit | None = None


_Segment = _Grouped | _Sorted | Limit


class External:
    """Runs a chain over more rows than memory holds; see the module. `tree` has one input, number 0."""

    def __init__(self, tree: Relation, settings: KernelSettings) -> None:
        self._columns = tree.columns
        self._settings = settings
        self._segments = _segments(tree)

    def run(self, session: DuckDbSession, rows: Chunks) -> Iterator[pa.RecordBatch]:
        """The tree's rows for these rows."""
        for segment in self._segments[:-1]:
            made = self._run(segment, session, rows)
            rows = spooled(made, self._settings.portion_bytes, self._settings.temp_directory)
        names = [column_name(column.id) for column in self._columns]
        for batch in self._run(self._segments[-1], session, rows):
            yield batch if batch.num_columns == max(len(names), 1) else batch.select(names)

    def _run(self, segment: _Segment, session: DuckDbSession, rows: Chunks) -> Iterator[pa.RecordBatch]:
        match segment:
            case _Grouped():
                return self._grouped(segment, session, rows)
            case _Sorted(sort=sort, limit=None):
                return ExternalSort(sort, None, self._settings).run(session, rows)
            case _Sorted(sort=sort, limit=limit):
                assert limit is not None
                reach = None if limit.count is None else limit.count + limit.offset
                ordered = ExternalSort(sort, reach, self._settings)
                return _limited(ordered.run(session, rows), limit)
            case Limit():
                return _limited(iter(rows.batches), segment)

    def _grouped(self, segment: _Grouped, session: DuckDbSession, rows: Chunks) -> Iterator[pa.RecordBatch]:
        parts = [rows]
        count = parts_for(rows.value_bytes, self._settings.part_bytes)
        if (most := rows_at_once(segment.tree, self._settings)) is not None:
            count = max(count, parts_for(sum(batch.num_rows for batch in rows.batches), most))
        if segment.keys and count > 1:
            parts = cut_into_parts(rows, segment.keys, count, session, self._settings)
        trees = divided(segment.tree, self._settings)
        schema = arrow_schema(result_columns(segment.tree))
        for part in parts:
            if not part.batches and len(parts) > 1:
                continue
            if isinstance(segment.tree, Window) and is_too_large(part, self._settings):
                yield from self._window(segment.tree, session, part)
            else:
                answers = (_answered(tree, session, part) for tree in trees)
                yield from (side_by_side(answers, schema),) if len(trees) > 1 else next(answers)
            part.release()

    def _window(self, window: Window, session: DuckDbSession, rows: Chunks) -> Iterator[pa.RecordBatch]:
        """A window over rows that may be too large for DuckDB: portion by portion, if that is possible."""
        plan = divided_window(window)
        if plan is None:
            return _answered(window, session, rows)
        if not isinstance(window.child, Input):
            below = _answered(window.child, session, rows)
            rows = spooled(below, self._settings.portion_bytes, self._settings.temp_directory)
            window = replace(window, child=Input(0, result_columns(window.child)))
        external = ExternalWindow(window, plan, self._settings)
        found = None
        if is_too_large(rows, self._settings) and external.accepts(rows):
            found = external.run(session, rows)
        return found if found is not None else _answered(window, session, rows)


def _answered(tree: Relation, session: DuckDbSession, rows: Chunks) -> Iterator[pa.RecordBatch]:
    taken = arrow_schema(_input_of(tree).columns)
    schema = arrow_schema(result_columns(tree))
    return session.stream(relation_sql(tree), {input_name(0): rows.reader(taken)}, schema)


def _limited(batches: Iterator[pa.RecordBatch], limit: Limit) -> Iterator[pa.RecordBatch]:
    """Yield some rows from an offset, and do not ask for those after them."""
    skip, left = limit.offset, sys.maxsize if limit.count is None else limit.count
    for batch in batches:
        rows = batch.slice(min(skip, batch.num_rows), left)
        skip -= min(skip, batch.num_rows)
        left -= rows.num_rows
        if rows.num_rows:
            yield rows
        if not left:
            return


def _segments(tree: Relation) -> tuple[_Segment, ...]:
    """The segments of a chain, from its input. A tree that is not a chain is one segment that cannot be divided."""
    chain: list[Relation] = []
    at = tree
    while not isinstance(at, Input):
        children = children_of(at)
        if len(children) != 1:
            return (_Grouped(tree, ()),)
        chain.append(at)
        (at,) = children
    segments: list[_Segment] = []
    open_tree: Relation = at
    for relation in reversed(chain):
        match relation:
            case Sort() | Limit():
                if not isinstance(open_tree, Input):
                    segments.append(_Grouped(open_tree, ()))
                source = Input(0, result_columns(relation))
                before = segments[-1] if segments and isinstance(open_tree, Input) else None
                if isinstance(relation, Sort):
                    segments.append(_Sorted(replace(relation, child=source)))
                elif isinstance(before, _Sorted) and before.limit is None:
                    segments[-1] = replace(before, limit=relation)
                else:
                    segments.append(relation)
                open_tree = source
            case Aggregate() | Window() | Single():
                whole = with_equal_children(relation, [open_tree])
                segments.append(_Grouped(whole, _keys_below(_divided_by(relation), open_tree)))
                open_tree = Input(0, result_columns(relation))
            case (
                Expand() | Unnest()
            ):  # the next relation divides its rows by the columns that this one computes
                segments.append(_Grouped(with_equal_children(relation, [open_tree]), ()))
                open_tree = Input(0, result_columns(relation))
            case _:
                open_tree = with_equal_children(relation, [open_tree])
    if not isinstance(open_tree, Input) or not segments:
        segments.append(_Grouped(open_tree, ()))
    return tuple(segments)


def _divided_by(relation: Aggregate | Window | Single) -> list[int]:
    """The columns by which a relation's rows can be divided: it only combines rows that are equal in them."""
    match relation:
        case Aggregate():
            return [n.expression.id for n in relation.keys if isinstance(n.expression, Column)]
        case Window():
            return [key.id for key in relation.partition if isinstance(key, Column)]
        case Single():
            return []


def _keys_below(wanted: list[int], at: Relation) -> tuple[int, ...]:
    """The positions of columns in the segment's input; computed columns are left out."""
    while not isinstance(at, Input):
        assert isinstance(at, Filter | Project), "a segment ends with what needs all rows"
        if isinstance(at, Project):
            origins = {
                named.column.id: named.expression.id
                for named in at.outputs
                if isinstance(named.expression, Column)
            }
            wanted = [origins[column_id] for column_id in wanted if column_id in origins]
        at = at.child
    places = {column.id: place for place, column in enumerate(at.columns)}
    return tuple(places[column_id] for column_id in wanted)


def _input_of(tree: Relation) -> Input:
    while not isinstance(tree, Input):
        tree = next(child for child in children_of(tree))
    return tree
