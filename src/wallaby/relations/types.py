"""Data types, as Spark defines them. Catalyst determines the type of everything; kernels never do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """The kind of a type; `DataType` has its parameters."""

    NULL = "void"
    BOOLEAN = "boolean"
    BYTE = "tinyint"
    SHORT = "smallint"
    INTEGER = "int"
    LONG = "bigint"
    FLOAT = "float"
    DOUBLE = "double"
    DECIMAL = "decimal"
    STRING = "string"
    BINARY = "binary"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMP_NTZ = "timestamp_ntz"
    #: Microseconds, and months. Nothing converts one to the other.
    DAY_TIME = "interval day to second"
    YEAR_MONTH = "interval year to month"
    ARRAY = "array"
    STRUCT = "struct"
    MAP = "map"

    #: A kind equals itself only. It is hashed often, and an enum's own hash is a function of Python.
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class DataType:
    """A type: `precision` and `scale` for decimals, `children` (and `names`, for structs) for nested ones.

    Whether elements, fields and values may be NULL is not part of a type: no computation depends on it, and the schema
    of a result is Spark's own. An interval also has `names`: the units in which it is shown, which do not affect its
    values.
    """

    kind: Kind
    precision: int = 0
    scale: int = 0
    children: tuple[DataType, ...] = ()
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        match self.kind:
            case Kind.DECIMAL:
                return f"decimal({self.precision},{self.scale})"
            case Kind.ARRAY | Kind.MAP:
                return f"{self.kind.value}<{','.join(map(str, self.children))}>"
            case Kind.STRUCT:
                fields = (f"{name}:{child}" for name, child in zip(self.names, self.children, strict=True))
                return f"struct<{','.join(fields)}>"
            case Kind.DAY_TIME | Kind.YEAR_MONTH if self.names:
                return f"interval {self.names[0]}"
            case _:
                return str(self.kind.value)

    @property
    def is_integral(self) -> bool:
        """A whole number in two's complement."""
        return self.kind in (Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG)

    @property
    def is_interval(self) -> bool:
        """A length of time."""
        return self.kind in (Kind.DAY_TIME, Kind.YEAR_MONTH)

    @property
    def is_floating(self) -> bool:
        """Binary floating point."""
        return self.kind in (Kind.FLOAT, Kind.DOUBLE)

    @property
    def is_nested(self) -> bool:
        """An array, a struct or a map."""
        return self.kind in (Kind.ARRAY, Kind.STRUCT, Kind.MAP)

    def has_values_of(self, other: DataType) -> bool:
        """Does the type have the same values as the other one, whatever the names of their parts?"""
        return (
            (self.kind, self.precision, self.scale) == (other.kind, other.precision, other.scale)
            and len(self.children) == len(other.children)
            and all(mine.has_values_of(its) for mine, its in zip(self.children, other.children, strict=True))
        )

    @property
    def element(self) -> DataType:
        """The type of an array's elements."""
        assert self.kind is Kind.ARRAY, f"{self} is no array"
        return self.children[0]


NULL = DataType(Kind.NULL)
BOOLEAN = DataType(Kind.BOOLEAN)
INTEGER = DataType(Kind.INTEGER)
LONG = DataType(Kind.LONG)
DOUBLE = DataType(Kind.DOUBLE)
STRING = DataType(Kind.STRING)
DATE = DataType(Kind.DATE)
TIMESTAMP = DataType(Kind.TIMESTAMP)
TIMESTAMP_NTZ = DataType(Kind.TIMESTAMP_NTZ)
DAY_TIME = DataType(Kind.DAY_TIME)
YEAR_MONTH = DataType(Kind.YEAR_MONTH)


def decimal(precision: int, scale: int) -> DataType:
    """A decimal type."""
    return DataType(Kind.DECIMAL, precision, scale)


def array(element: DataType) -> DataType:
    """An array type."""
    return DataType(Kind.ARRAY, children=(element,))


def struct(**fields: DataType) -> DataType:
    """A struct type."""
    return DataType(Kind.STRUCT, children=tuple(fields.values()), names=tuple(fields))


def parts_of(type_: DataType) -> Iterator[DataType]:
    """A type and all types in it."""
    yield type_
    for child in type_.children:
        yield from parts_of(child)
