"""Statistics of tables that are known before anything is read: the sums of their Parquet footers.

`tables/tables.py` reads the footers and fills in these values; planning only uses them. All but the row counts and the
splits are optional: statistics change how fast a plan is, never its answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wallaby.plan.physical import Split
from wallaby.relations.formats import PARQUET, Format
from wallaby.relations.relation import DataFile, Scan


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """One column over all files. `name` is the name in the files."""

    name: str
    #: Like a literal's value: int, float, Decimal, str, bytes, bool, date or datetime; None: unknown. Truncated bounds
    #: (of long strings) may be given as they are: only estimates use them.
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
    """The statistics of a table, which is identified by its files and by how they are read."""

    files: tuple[DataFile, ...]
    rows: int
    columns: tuple[ColumnStatistics, ...]
    #: The units in which the table is read; every row group is in exactly one of them.
    splits: tuple[Split, ...]
    format: Format = PARQUET

    def column(self, name: str) -> ColumnStatistics:
        """The statistics of a column; empty for an unknown column."""
        return next((c for c in self.columns if c.name == name), ColumnStatistics(name))


class _WithEstimates:
    """What was estimated from statistics stays with them: rules estimate the same relations one after the other."""

    __slots__ = ("_estimates",)
    _estimates: dict[int, Any]

    @property
    def estimates(self) -> dict[int, Any]:
        """Estimates by the identity of relations; `Estimator` fills it."""
        try:
            return self._estimates
        except AttributeError:
            object.__setattr__(self, "_estimates", {})
            return self._estimates


@dataclass(frozen=True, slots=True)
class Statistics(_WithEstimates):
    """All tables of a query."""

    tables: tuple[TableStatistics, ...]

    def of(self, scan: Scan) -> TableStatistics | None:
        """The table that a scan reads."""
        return next((t for t in self.tables if (t.files, t.format) == (scan.files, scan.format)), None)
