"""Relations: the frozen tree that represents a query, and also the work of a stage.

Every relation knows its output columns, in order. The leaves are sources, or numbered `Input`s: rows that come from
elsewhere. The same nodes represent the whole query and the part of it that one stage runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from wallaby.relations.expression import Aggregation, Column, Expression, Named, SortKey
from wallaby.relations.formats import PARQUET, Format
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.types import DataType


@dataclass(frozen=True, slots=True)
class Constant:
    """A column with one value in all rows of a file, such as a partition column, whose value names the directory."""

    name: str
    #: Like a literal's value. The type is needed beside it because 1, 1.0 and True are equal in Python.
    value: object
    type: DataType


#: The time of a file whose name is never used twice, so that it need not be compared.
ANY_TIME: Final = -1


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file as it was when the query was planned; a different size or time later is an error."""

    #: A local path, unless a storage is named.
    path: str
    size_bytes: int
    #: Or `ANY_TIME`.
    modified_ms: int
    #: These columns are not read from the file, even if it has columns of these names.
    constants: tuple[Constant, ...] = ()
    #: The name of its storage, unless that is a local disk; see `storage`.
    storage: str = ""


@dataclass(frozen=True, slots=True)
class Scan:
    """A table in files. `columns` are those that are needed; `names` are the table's names for them.

    A file may write a name in another case, have a narrower type, or lack the column, which is then NULL.
    """

    files: tuple[DataFile, ...]
    columns: tuple[Column, ...]
    names: tuple[str, ...]
    label: str = ""
    format: Format = PARQUET


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that are part of the query itself, with values like those of literals."""

    rows: tuple[tuple[object, ...], ...]
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """`count` whole numbers from `start`, `step` apart."""

    start: int
    step: int
    count: int
    column: Column

    @property
    def columns(self) -> tuple[Column, ...]:
        """The numbers."""
        return (self.column,)


@dataclass(frozen=True, slots=True)
class Input:
    """Rows that come over a link or from a split; `number` says which input of the stage."""

    number: int
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """The rows for which the condition is true."""

    child: Relation
    condition: Expression

    @property
    def columns(self) -> tuple[Column, ...]:
        """The child's."""
        return self.child.columns


@dataclass(frozen=True, slots=True)
class Project:
    """New columns from old."""

    child: Relation
    outputs: tuple[Named, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The named ones."""
        return tuple(named.column for named in self.outputs)


@dataclass(frozen=True, slots=True)
class Join:
    """Pairs with equal keys for which `residual` is true. Keys that are NULL equal nothing."""

    left: Relation
    right: Relation
    kind: JoinKind
    left_keys: tuple[Expression, ...]
    right_keys: tuple[Expression, ...]
    residual: Expression | None
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One row per group; without keys, one row in total. Outputs may compute with aggregations and keys."""

    child: Relation
    keys: tuple[Named, ...]
    aggregations: tuple[Named, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """Keys first, then aggregations."""
        return tuple(named.column for named in (*self.keys, *self.aggregations))


@dataclass(frozen=True, slots=True)
class Sort:
    """All rows in one order."""

    child: Relation
    keys: tuple[SortKey, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The child's."""
        return self.child.columns


@dataclass(frozen=True, slots=True)
class Limit:
    """`count` rows, or all (None), after skipping `offset`: the first ones of a sorted child, otherwise any."""

    child: Relation
    count: int | None
    offset: int = 0

    @property
    def columns(self) -> tuple[Column, ...]:
        """The child's."""
        return self.child.columns


@dataclass(frozen=True, slots=True)
class Single:
    """The child's only row, or a row of NULLs if it has none; more than one row is an error. A subquery's value."""

    child: Relation

    @property
    def columns(self) -> tuple[Column, ...]:
        """The child's, which may be NULL."""
        return tuple(replace(column, nullable=True) for column in self.child.columns)


class FrameUnit(Enum):
    """What the ends of a frame count: rows, or distances in values of the sort key."""

    ROWS = "rows"
    RANGE = "range"


@dataclass(frozen=True, slots=True)
class Frame:
    """The rows that a window function sees: from `begin` to `end` rows after the current one; None: no end.

    In a range frame, `begin` and `end` count in the smallest units of the only key (days, microseconds, the last digit
    of a decimal) or in calendar months; for a floating-point key they are floating-point numbers.
    """

    unit: FrameUnit
    begin: int | float | None
    end: int | float | None
    months: bool = False


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A function over a frame, or over the order of a partition, and the column that it becomes."""

    column: Column
    function: Aggregation
    frame: Frame
    ignore_nulls: bool = False


@dataclass(frozen=True, slots=True)
class Window:
    """The child's rows, each with the results of functions over the rows around it in its partition."""

    child: Relation
    partition: tuple[Expression, ...]
    order: tuple[SortKey, ...]
    calls: tuple[WindowCall, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The child's, then one for each function."""
        return (*self.child.columns, *(call.column for call in self.calls))


@dataclass(frozen=True, slots=True)
class Expand:
    """Every row once for each projection, whose expressions become the columns: the first step of grouping sets."""

    child: Relation
    projections: tuple[tuple[Expression, ...], ...]
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Unnest:
    """Every row once for each element of an array: some of its columns, the element's position, and the element."""

    child: Relation
    array: Expression
    #: The child's columns that are kept.
    kept: tuple[Column, ...]
    #: The positions of elements, from 0, if they are wanted.
    position: Column | None
    #: The element, or its fields if `fields` is set.
    values: tuple[Column, ...]
    fields: bool
    #: Is a row without elements kept, once, with NULLs?
    outer: bool

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that are kept, then the new ones."""
        return (*self.kept, *(() if self.position is None else (self.position,)), *self.values)


@dataclass(frozen=True, slots=True)
class Union:
    """All rows of all children, whose columns correspond by position."""

    children: tuple[Relation, ...]
    columns: tuple[Column, ...]


#: The relations that have no children.
Source = Scan | Rows | Range
Relation = (
    Source
    | Input
    | Filter
    | Project
    | Join
    | Aggregate
    | Sort
    | Limit
    | Single
    | Expand
    | Unnest
    | Window
    | Union
)


def children_of(relation: Relation) -> tuple[Relation, ...]:
    """The children of a relation."""
    match relation:
        case Scan() | Rows() | Range() | Input():
            return ()
        case Join():
            return (relation.left, relation.right)
        case Union():
            return relation.children
        case (
            Filter() | Project() | Aggregate() | Sort() | Limit() | Single() | Expand() | Unnest() | Window()
        ):
            return (relation.child,)
