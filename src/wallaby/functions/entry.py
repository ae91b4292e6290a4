"""A function, declared once: how Catalyst's expression is read, how it is computed, under which guard, and examples.

`EXACT` means that DuckDB's own function does what Spark does. `EXACT_WITH_GUARD` means that it does so only with the
extra care that the note describes. Everything else is `UNSUPPORTED`, with the reason. Uses that an entry does not cover
(argument types, an evaluation mode) are refused when a plan is read, never when it runs.

`exact`, `guarded` and `unsupported` declare an entry. Several of Catalyst's classes may be one function: then one of
the entries says how it is computed, and the others only name it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypedDict, Unpack

from wallaby.catalyst.node import Node
from wallaby.functions.aggregate_sql import AggregateSql
from wallaby.functions.scalar_sql import ScalarSql
from wallaby.relations.expression import Aggregation, Call, EvalMode, Expression
from wallaby.relations.types import DataType, Kind


class Exactness(Enum):
    """How well our answer agrees with Spark's."""

    EXACT = "exact"
    EXACT_WITH_GUARD = "exact with a guard"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why this use of an expression is not supported, and what would help."""

    why: str
    remedy: str = ""


#: Makes our expression from Catalyst's node, its arguments already read, and its type.
Build = Callable[["Entry", Node, tuple[Expression, ...], DataType], Expression | Refusal]
#: The time zones that a node depends on, by name.
Zones = Callable[[Node], tuple[str, ...]]
#: Inspects a node before its children are read, and may replace it.
Rewrite = Callable[[Node], Node]


@dataclass(frozen=True, slots=True)
class Entry:
    """The declaration of an expression class."""

    catalyst: str
    function: str
    exactness: Exactness
    #: The kinds that each argument may have; the last applies to all further ones. Empty: any.
    takes: tuple[frozenset[Kind], ...] = ()
    #: The guard, or why it is not supported.
    note: str = ""
    remedy: str = ""
    build: Build | None = None
    rewrite: Rewrite | None = None
    #: A session setting and the only value with which the entry is correct.
    requires: tuple[str, str] | None = None
    #: The rules of these time zones follow the arguments, as texts.
    zones: Zones | None = None
    #: How the function is computed; None if another entry says so, or if `build` makes another expression.
    sql: ScalarSql | AggregateSql | None = None
    #: How it is written in SQL, for the differential suite: `docs/howto/add-a-function.md` has the placeholders.
    examples: tuple[str, ...] = ()
    #: Why it has no example.
    without_example: str = ""
    #: The class that appears in the plan of an example, if that is another.
    shown_as: str = ""
    #: It is a difference of sums: where these cancel each other, only rounding errors remain.
    cancels: bool = False

    def make(
        self,
        node: Node,
        arguments: tuple[Expression, ...],
        kind: DataType,
        zones: tuple[Expression, ...] = (),
    ) -> Expression | Refusal:
        """Make our expression for a node, or say why there is none."""
        for number, argument in enumerate(arguments if self.takes else ()):
            if argument.type.kind not in self.takes[min(number, len(self.takes) - 1)]:
                return Refusal(
                    f"it is not supported on {argument.type}", "cast the argument, if that is possible"
                )
        return (self.build or plain)(self, node, (*arguments, *zones), kind)


def plain(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Apply the function to the arguments in order."""
    mode = mode_of(node)
    if isinstance(mode, Refusal):
        return mode
    return Call(entry.function, arguments, kind, node.nullable, mode)


def mode_of(node: Node) -> EvalMode | Refusal:
    """The evaluation mode of a node; ANSI for an expression without a mode, which cannot fail."""
    try:
        return EvalMode(node.mode.lower()) if node.mode else EvalMode.ANSI
    except ValueError:
        return Refusal(f"its evaluation mode {node.mode} is unknown")


def transparent(
    _entry: Entry, _node: Node, arguments: tuple[Expression, ...], _kind: DataType
) -> Expression | Refusal:
    """Remove a wrapper that only Catalyst uses."""
    return arguments[0]


def fails(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Read the mode from a flag that Catalyst calls failOnError or ansiEnabled."""
    fields = node.fields or {}
    flag = next((name for name in ("failOnError", "ansiEnabled") if name in fields), None)
    mode = "ANSI" if flag is None or node.flag(flag) else "LEGACY"
    return plain(entry, replace(node, mode=mode), arguments, kind)


def read_aggregation(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Apply the aggregate function to the arguments in order."""
    mode = mode_of(node)
    if isinstance(mode, Refusal):
        return mode
    return Aggregation(entry.function, arguments, kind, node.nullable, mode=mode)


class Details(TypedDict, total=False):
    """Optional fields of an entry; see `Entry`."""

    build: Build | None
    rewrite: Rewrite | None
    requires: tuple[str, str] | None
    zones: Zones | None
    sql: ScalarSql | AggregateSql | None
    examples: tuple[str, ...]
    without_example: str
    shown_as: str
    cancels: bool


def exact(catalyst: str, function: str, *takes: frozenset[Kind], **details: Unpack[Details]) -> Entry:
    """Declare a function that DuckDB computes as Spark does."""
    return Entry(catalyst, function, Exactness.EXACT, takes, **details)


def guarded(
    catalyst: str, function: str, *takes: frozenset[Kind], guard: str, **details: Unpack[Details]
) -> Entry:
    """Declare a function that is computed as on Spark with a guard."""
    return Entry(catalyst, function, Exactness.EXACT_WITH_GUARD, takes, note=guard, **details)


def unsupported(catalyst: str, why: str, remedy: str = "", *, rewrite: Rewrite | None = None) -> Entry:
    """Declare a function that Spark has to compute."""
    return Entry(catalyst, "", Exactness.UNSUPPORTED, note=why, remedy=remedy, rewrite=rewrite)
