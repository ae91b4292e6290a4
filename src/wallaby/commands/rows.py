"""Print and write rows: as a table, CSV, JSON lines, or a file."""

from __future__ import annotations

import csv
import json
import math
import sys
from pathlib import Path
from typing import Any, Final, TextIO

import pyarrow as pa
import pyarrow.parquet as pq
from rich.table import Table

from wallaby.commands.terminal import note, open_for_writing, out
from wallaby.errors import InvalidArgumentError

SUFFIXES: Final = (".parquet", ".csv", ".json", ".jsonl")


def check_suffix(path: Path) -> None:
    """Check, before the query runs, that rows can be written to such a file."""
    if path.suffix.lower() not in SUFFIXES:
        raise InvalidArgumentError(
            f"The suffix of {path} names no known format.", fix=f"Use one of {', '.join(SUFFIXES)}."
        )
    if not path.parent.is_dir():
        raise InvalidArgumentError(f"There is no directory {path.parent}.", fix="Make it first.")


def write_rows(rows: pa.Table, path: Path) -> None:
    """Write rows to a file, in the format of its suffix."""
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        try:
            pq.write_table(rows, path)
        except OSError as error:
            raise InvalidArgumentError(f"Cannot write {path}: {error}.", fix="Name another file.") from error
        return
    with open_for_writing(path) as file:
        _write(rows, "csv" if suffix == ".csv" else "json", file)


def print_rows(rows: pa.Table, kind: str, rows_max: int) -> None:
    """Print rows to standard output."""
    if kind == "table":
        out.print(as_table(rows, rows_max))
        if rows_max and rows.num_rows > rows_max:
            note(f"… {rows.num_rows - rows_max:,} more rows: --rows 0 prints all")
    else:
        _write(rows, kind, sys.stdout)
        sys.stdout.flush()


def as_table(rows: pa.Table, rows_max: int, characters_max: int = 0) -> Table:
    """The first rows as a table, with the first characters of each value; 0 for all."""
    table = Table(header_style="bold")
    for field in rows.schema:
        numeric = (
            pa.types.is_integer(field.type)
            or pa.types.is_floating(field.type)
            or pa.types.is_decimal(field.type)
        )
        table.add_column(field.name, justify="right" if numeric else "left", overflow="fold")
    for row in _tuples(rows.slice(0, rows_max) if rows_max else rows):
        table.add_row(*(_cell(value, characters_max) for value in row))
    return table


def _cell(value: object, characters_max: int) -> str:
    text = "NULL" if value is None else str(value)
    if characters_max and len(text) > characters_max:
        text = text[: characters_max - 1] + "…"
    return text.replace("[", r"\[")


def _write(rows: pa.Table, kind: str, file: TextIO) -> None:
    if kind == "csv":
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(rows.column_names)
        writer.writerows(_tuples(rows))
        return
    for row in _tuples(rows):
        named = {name: _plain(value) for name, value in zip(rows.column_names, row, strict=True)}
        file.write(json.dumps(named, ensure_ascii=False, default=str) + "\n")


def _tuples(rows: pa.Table) -> Any:
    """Rows as tuples, because names may repeat."""
    for batch in rows.to_batches():
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _plain(value: Any) -> Any:
    """Replace NaN and infinities, which JSON does not have."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
