"""Write a difference as a self-contained PySpark script: rows, settings, query, and both answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wallaby_lab.differential.generated.schemas import RandomTable
from wallaby_lab.differential.generated.values import COLUMNS

_HEAD = '''"""{what}"""

import datetime
import tempfile
from decimal import Decimal

from pyspark.sql import SparkSession

import wallaby

inf, nan = float("inf"), float("nan")
spark = SparkSession.builder.master("local[3]").config("spark.ui.enabled", "false").getOrCreate()
spark.conf.set("spark.sql.session.timeZone", "UTC")
directory = tempfile.mkdtemp()
'''
_TAIL = '''
query = """{query}"""
with wallaby.attach(spark, workers=2, threads=1, spark_errors=False{planning}) as engine:
    df = spark.sql(query)
    print("fallback:", engine.fallback_reasons(df))
    for run in (df.collect, lambda: engine.collect(df)):
        try:
            print(*run(), sep="\\n")
        except Exception as error:
            print(str(error).splitlines()[0])
        print("--")
spark.stop()
'''


def prepared(tables: Sequence[RandomTable], settings: Mapping[str, str], what: str) -> str:
    """The beginning of a script: a session with these tables and settings."""
    lines = [head(what), *map(table_lines, tables)]
    lines += [f'spark.conf.set("{key}", "{value}")\n' for key, value in settings.items()]
    return "".join(lines)


def script(
    query: str,
    tables: Sequence[RandomTable],
    settings: Mapping[str, str],
    planning: Mapping[str, int],
    what: str,
) -> str:
    """The script."""
    lines = [prepared(tables, settings, what)]
    chosen = "".join(f", {key}={value}" for key, value in planning.items())
    lines.append(_TAIL.format(planning=chosen, query=query.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')))
    return "".join(lines)


def head(what: str) -> str:
    """How a script begins: what it shows, and a session."""
    return _HEAD.format(what=what.replace("\\", "\\\\").replace('"""', "'''"))


def table_lines(table: RandomTable) -> str:
    """The lines that write a table and register it."""
    maps = [COLUMNS[field.kind].sql.startswith("map") for field in table.fields]
    rows = "".join(f"    {_row(row, maps)},\n" for row in table.rows)
    return (
        f"rows = [\n{rows}]\n"
        f'spark.createDataFrame(rows, "{table.ddl}").coalesce(1).write.parquet(directory + "/{table.name}")\n'
        f'spark.read.parquet(directory + "/{table.name}").createOrReplaceTempView("{table.name}")\n'
    )


def _row(row: tuple[Any, ...], maps: Sequence[bool]) -> str:
    row = tuple(
        dict(value) if is_map and value is not None else value
        for value, is_map in zip(row, maps, strict=True)
    )
    return "(" + ", ".join(map(repr, row)) + ("," if len(row) == 1 else "") + ")"
