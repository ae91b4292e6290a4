"""Rows that are generated instead of read: rows in the query itself, and ranges of whole numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from wallaby.plan.physical import RowSplit
from wallaby.relations.relation import Range, Rows
from wallaby.sql.types import arrow_schema


def generate_rows(source: Rows | Range, split: RowSplit) -> pa.Table:
    """The rows of a split, as one chunk."""
    schema = arrow_schema(source.columns)
    if isinstance(source, Range):
        places = np.arange(split.first, split.first + split.rows, dtype=np.int64)
        # A range may begin near one end of the 64-bit numbers and end near the other, but never beyond.
        return pa.table([pa.array(source.start + places * source.step)], schema=schema)
    rows = source.rows[split.first : split.first + split.rows]
    arrays = [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(schema)]
    return pa.table(arrays, schema=schema)
