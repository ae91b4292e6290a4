"""Partition pruning: skip files of partitions that the conditions of a query exclude.

A condition on columns that are constant in every file of a table has the same value for all rows of a file. So it is
computed here, before any footer is read, by the kernels that would compute it for every row. Files that it excludes are
not part of the query; for the others it need not be computed again.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from wallaby.errors import QueryError
from wallaby.operators.program import Program
from wallaby.relations.expression import Column, Expression, columns_in
from wallaby.relations.relation import DataFile, Filter, Input, Relation, Scan
from wallaby.relations.tree import conjunction, conjuncts, filtered, rewrite_up
from wallaby.relations.types import LONG
from wallaby.sql.types import arrow_schema, column_name
from wallaby.statements.connection import DuckDbSession, KernelSettings
from wallaby.statements.expression import supports


def without_excluded_files(relation: Relation) -> Relation:
    """Drop the files that a relation's conditions on partition columns exclude."""
    session: list[DuckDbSession] = []

    def exclude(part: Relation) -> Relation:
        if not isinstance(part, Filter) or not isinstance(part.child, Scan):
            return part
        scan = part.child
        columns = _constant_columns(scan)
        conditions = conjuncts(part.condition)
        settled = [condition for condition in conditions if _is_settled(condition, columns)]
        if not settled:
            return part
        rest = [condition for condition in conditions if condition not in settled]
        if not session:
            session.append(DuckDbSession(KernelSettings()))
        try:
            files = _chosen(scan.files, columns, settled, session[0])
        except QueryError:  # a row, if there is one, would raise the same error
            return part
        return filtered(replace(scan, files=files), rest)

    try:
        return rewrite_up(relation, exclude)
    finally:
        for made in session:
            made.close()


def _is_settled(condition: Expression, columns: dict[int, tuple[Column, str]]) -> bool:
    used = columns_in(condition)
    return bool(used) and used <= columns.keys() and supports(condition) is None


def _constant_columns(scan: Scan) -> dict[int, tuple[Column, str]]:
    """The columns of a scan that are constant in every file, with their names."""
    constant = [{constant.name.lower() for constant in file.constants} for file in scan.files]
    known = set.intersection(*constant) if constant else set()
    pairs = zip(scan.columns, scan.names, strict=True)
    return {column.id: (column, name) for column, name in pairs if name.lower() in known}


def _chosen(
    files: tuple[DataFile, ...],
    columns: dict[int, tuple[Column, str]],
    conditions: list[Expression],
    session: DuckDbSession,
) -> tuple[DataFile, ...]:
    used = frozenset[int]().union(*map(columns_in, conditions))
    asked = [columns[column_id] for column_id in sorted(used)]
    # Most files share their constants with others.
    rows = list(dict.fromkeys(tuple(_value(file, name) for _, name in asked) for file in files))
    number = Column(max(used) + 1, "number", LONG, nullable=False)
    table = Input(0, (*(column for column, _ in asked), number))
    schema = arrow_schema(table.columns)
    arrays = [pa.array([row[i] for row in rows], schema.field(i).type) for i in range(len(asked))]
    batch = pa.record_batch([*arrays, pa.array(range(len(rows)), pa.int64())], schema=schema)
    condition = conjunction(conditions)
    assert condition is not None
    program = Program(Filter(table, condition), frozenset())
    left = {
        rows[place.as_py()]
        for found in program.run(session, {0: (batch,)})
        for place in found.column(column_name(number.id))
    }
    return tuple(file for file in files if tuple(_value(file, name) for _, name in asked) in left)


def _value(file: DataFile, name: str) -> object:
    return next(each.value for each in file.constants if each.name.lower() == name.lower())
