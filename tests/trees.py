"""Short ways to write trees and tables in the kernels' tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from wallaby.operators.kernel import EMPTY, make_kernel
from wallaby.plan.physical import Fragment
from wallaby.relations.expression import Aggregation, Call, Column, EvalMode, Expression, Literal, Named
from wallaby.relations.relation import DataFile, Input, Relation, Scan
from wallaby.relations.types import BOOLEAN, DataType, Kind
from wallaby.sql.types import arrow_schema
from wallaby.statements.connection import DuckDbSession, KernelSettings
from wallaby.statements.expression import output_sql, supports
from wallaby.statements.relation import relation_reason, relation_sql

SETTINGS = KernelSettings(memory_bytes=256 << 20)
BYTE = DataType(Kind.BYTE)
SHORT = DataType(Kind.SHORT)
FLOAT = DataType(Kind.FLOAT)
BINARY = DataType(Kind.BINARY)


def map_of(key: DataType, value: DataType) -> DataType:
    return DataType(Kind.MAP, children=(key, value))


def column(number: int, type_: DataType, name: str = "") -> Column:
    return Column(number, name or f"col{number}", type_, nullable=True)


def literal(value: object, type_: DataType) -> Literal:
    return Literal(value, type_)


def call(function: str, type_: DataType, *arguments: Expression, mode: EvalMode = EvalMode.ANSI) -> Call:
    return Call(function, arguments, type_, nullable=True, mode=mode)


def test(function: str, *arguments: Expression) -> Call:
    return call(function, BOOLEAN, *arguments)


test.__test__ = False  # type: ignore[attr-defined]  # a builder, not a test


def aggregation(
    function: str,
    type_: DataType,
    *arguments: Expression,
    distinct: bool = False,
    where: Expression | None = None,
) -> Aggregation:
    return Aggregation(function, arguments, type_, nullable=True, distinct=distinct, filter=where)


def named(number: int, expression: Expression) -> Named:
    return Named(column(number, expression.type), expression)


def value_of(expression: Expression, session: DuckDbSession) -> object:
    """What an expression over constants is; as a column, so that nothing is computed by the planner alone."""
    assert supports(expression) is None, supports(expression)
    sql = f"SELECT {output_sql(expression)} AS x FROM one"
    found = session.query(sql, {"one": pa.table({"u": [1]})})
    return found.column(0)[0].as_py()


def rows_of(columns: Sequence[Column], rows: Sequence[Sequence[object]]) -> list[pa.RecordBatch]:
    schema = arrow_schema(columns)
    arrays = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(schema)]
    return [pa.RecordBatch.from_arrays(arrays, schema=schema)] if rows else []


def run(
    relation: Relation, session: DuckDbSession, **inputs: Sequence[pa.RecordBatch]
) -> list[tuple[object, ...]]:
    """The rows of a tree by one SQL statement; inputs are given as `i0=…`."""
    assert relation_reason(relation) is None, relation_reason(relation)
    tables = {f"input_{name[1:]}": batches for name, batches in inputs.items()}
    schemas = {f"input_{i.number}": arrow_schema(i.columns) for i in inputs_in(relation)}
    found = session.query(
        relation_sql(relation), {n: pa.Table.from_batches(tables.get(n, []), s) for n, s in schemas.items()}
    )
    return tuples(found.to_batches())


def inputs_in(relation: Relation) -> list[Input]:
    from wallaby.statements.relation import inputs_of

    return list(inputs_of(relation))


def tuples(batches: Sequence[pa.RecordBatch]) -> list[tuple[object, ...]]:
    return [row for b in batches for row in zip(*(c.to_pylist() for c in b.columns), strict=True)]


def reduce_all(fragment: Fragment, batches: Sequence[pa.RecordBatch]) -> list[tuple[object, ...]]:
    kernel = make_kernel(fragment, SETTINGS)
    _, result = kernel.step(EMPTY, inputs={0: batches}, last=True)
    return tuples(result.batches)


def parquet(path: Path, table: pa.Table, row_group_size: int = 1000) -> DataFile:
    pq.write_table(table, path, row_group_size=row_group_size)
    return file_of(path)


def file_of(path: Path) -> DataFile:
    found = path.stat()
    return DataFile(str(path), found.st_size, found.st_mtime_ns // 1_000_000)


def scan_of(file: DataFile, *columns: tuple[str, DataType]) -> Scan:
    made = tuple(Column(10 + i, name, type_, nullable=True) for i, (name, type_) in enumerate(columns))
    return Scan((file,), made, tuple(name for name, _ in columns))
