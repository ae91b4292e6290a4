"""Compare answers to TPC-H with published ones in files.

An answer is a file `qNN.csv`, with `|` between values and a line of
names first. The specification (2.1.3.5) lets sums differ by 100, averages and ratios by 1 %, and nothing else differ at
all. Here the rule is narrower: texts, dates and whole numbers are the same, and other numbers are within 1e-5 of each
other, or the same once the file's is rounded to the digits that the type of our column has. Rows are compared in an
fixed order, because ties have none; the comparison with Spark shows that ORDER BY is respected.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Final

import pyarrow as pa

from wallaby.errors import InvalidArgumentError

TOLERANCE: Final = Decimal("1e-5")

#: A row for sorting and comparing: the values that must be equal, and the numbers that may be rounded.
_Row = tuple[tuple[str, ...], tuple[Decimal, ...]]


def answer_file(directory: Path, number: int) -> Path:
    """The file of a query's answer."""
    path = directory / f"q{number:02d}.csv"
    if not path.exists():
        raise InvalidArgumentError(f"{directory} has no {path.name}.", fix="Name a directory of answers.")
    return path


def difference(answer: pa.Table, path: Path) -> str:
    """How an answer differs from a file; empty if it does not."""
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [line.split("|") for line in lines[1:] if line]
    if any(len(row) != answer.num_columns for row in rows):
        return f"{path.name} has rows of other than {answer.num_columns} columns"
    if len(rows) != answer.num_rows:
        return f"{answer.num_rows} rows instead of {len(rows)}"
    rounded = [_digits(field.type) for field in answer.schema]
    ours = [column.to_pylist() for column in answer.columns]
    theirs: list[list[object]] = [[row[place] for row in rows] for place in range(answer.num_columns)]
    try:
        pairs = zip(sorted(_rows(ours, rounded)), sorted(_rows(theirs, rounded)), strict=True)
        different = [(mine, row) for mine, row in pairs if not _same(mine, row, rounded)]
    except InvalidOperation:
        return f"{path.name} has no number where a column is one"
    return f"{different[0][0]} instead of {different[0][1]}" if different else ""


def _digits(type_: pa.DataType) -> int | None:
    """The digits after the point of a column whose numbers may be rounded, 0 for floats; None for other columns."""
    if pa.types.is_decimal(type_):
        return int(type_.scale)
    return 0 if pa.types.is_floating(type_) else None


def _rows(columns: list[list[object]], rounded: list[int | None]) -> list[_Row]:
    exact = [column for column, digits in zip(columns, rounded, strict=True) if digits is None]
    numbers = [column for column, digits in zip(columns, rounded, strict=True) if digits is not None]
    count = len(columns[0]) if columns else 0
    return [
        (
            tuple(str(column[row]).rstrip() for column in exact),
            tuple(_number(column[row]) for column in numbers),
        )
        for row in range(count)
    ]


def _number(value: object) -> Decimal:
    return Decimal(str(value))


def _same(mine: _Row, row: _Row, rounded: list[int | None]) -> bool:
    digits = [each for each in rounded if each is not None]
    numbers = zip(mine[1], row[1], digits, strict=True)
    return mine[0] == row[0] and all(_close(a, b, places) for a, b, places in numbers)


def _close(ours: Decimal, theirs: Decimal, digits: int) -> bool:
    if abs(ours - theirs) <= TOLERANCE * max(abs(ours), abs(theirs)):
        return True
    return digits > 0 and abs(ours - theirs) <= Decimal(5).scaleb(-digits - 1)
