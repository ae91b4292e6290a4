"""Results and plans as notebooks show them: HTML with everything escaped, and never more than a few rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from wallaby.observe.finding import Finding
from wallaby.observe.units import counted

ROWS_MAX: Final = 20
CELL_CHARACTERS: Final = 100


class Explained(str):
    """A text about a plan, which notebooks show as it is written."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self)}</pre>"


def shown_result(
    title: str, names: Sequence[str], batches: Sequence[pa.RecordBatch] | None, findings: Iterable[Finding]
) -> str:
    """A result: its first rows if all have arrived, and what cost most."""
    parts = [f"<p>{escape(title)}</p>"]
    if batches is not None:
        heads = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in islice(_rows(batches), ROWS_MAX))
        parts.append(f"<table><tr>{heads}</tr>{body}</table>")
        count = sum(batch.num_rows for batch in batches)
        if count > ROWS_MAX:
            parts.append(f"<p>the first {ROWS_MAX} of {counted(count, 'row')}</p>")
    parts += [finding._repr_html_() for finding in findings]
    return "".join(parts)


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterable[tuple[Any, ...]]:
    for batch in batches:
        first = batch.slice(0, ROWS_MAX)
        yield from zip(*(column.to_pylist() for column in first.columns), strict=True)


def _cell(value: object) -> str:
    text = "NULL" if value is None else str(value)
    return f"<td>{escape(text if len(text) <= CELL_CHARACTERS else text[: CELL_CHARACTERS - 1] + '…')}</td>"
