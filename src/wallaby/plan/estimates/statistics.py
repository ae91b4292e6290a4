"""What is known of the tables before anything is read: the sums of their Parquet footers.

Whoever opens the footers (`tables/tables.py`) fills these values; planning only looks at them. Everything but the
row counts and the splits is optional: statistics change how fast a plan is, never what it answers.
"""

from __future__ import annotations

from dataclasses import dataclass

from wallaby.plan.physical import Split
from wallaby.relations.formats import PARQUET, Format
from wallaby.relations.relation import DataFile, Scan


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """One column over all files. `name` is the name in the files."""

    name: str
    #: Like a literal's value: int, float, Decimal, str, bytes, bool, date or datetime; None: unknown. Bounds
    #: that the writer cut short (long strings) may be given as they are: they only steer estimates.
    minimum: object = None
    maximum: object = None
    nulls: int | None = None
    #: Encoded but not compressed (Parquet's total_uncompressed_size). With a dictionary, the bits per row say
    #: how many different values there are.
    encoded_bytes: int | None = None
    #: About how many different values there are, if the footers allow a guess.
    distinct: int | None = None


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """A table is known by its files, and by how they are read."""

    files: tuple[DataFile, ...]
    rows: int
    columns: tuple[ColumnStatistics, ...]
    #: The units in which the table is read; every row group in exactly one.
    splits: tuple[Split, ...]
    format: Format = PARQUET

    def column(self, name: str) -> ColumnStatistics:
        """What is known of a column; of an unknown one, nothing."""
        return next((c for c in self.columns if c.name == name), ColumnStatistics(name))


@dataclass(frozen=True, slots=True)
class Statistics:
    """All tables of a query."""

    tables: tuple[TableStatistics, ...]

    def of(self, scan: Scan) -> TableStatistics | None:
        """The table that a scan reads."""
        return next((t for t in self.tables if (t.files, t.format) == (scan.files, scan.format)), None)
