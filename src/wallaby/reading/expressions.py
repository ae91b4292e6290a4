"""Read expressions: Catalyst's trees become ours, with a reason for every part that cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from wallaby.catalyst.data_types import data_type, literal
from wallaby.catalyst.node import Node
from wallaby.functions.casts.nested_casts import cast_nested
from wallaby.functions.entry import Entry, Exactness, Refusal
from wallaby.functions.nested.arrays import OF_ARRAYS
from wallaby.functions.registry import entry_for
from wallaby.reading.subqueries import is_subquery
from wallaby.relations.expression import Call, Column, Expression, Literal
from wallaby.relations.functions import LAMBDA
from wallaby.relations.reason import Reason
from wallaby.relations.types import STRING, DataType
from wallaby.relations.zone import UTC

_NO_SETTINGS: Final[Mapping[str, str]] = {}


class ExpressionReader:
    """Reads the expressions of one plan, and lists why it refuses some in `reasons`, each reason once.

    `subquery` reads a scalar subquery, `window` a window function; the reader of operators sets both. `zone` looks up
    the rules of time zones.
    """

    def __init__(self, largest_id: int, settings: Mapping[str, str] = _NO_SETTINGS) -> None:
        self.reasons: list[Reason] = []
        self._settings = settings
        self.subquery: Callable[[Node], Expression | None] | None = None
        self.window: Callable[[Node], Expression | None] | None = None
        self.zone: Callable[[str], str | None] = _only_utc
        #: The rules of the session's zone.
        self.session_zone = UTC
        self._largest_id = largest_id

    def fresh_id(self) -> int:
        """An id that no column of the plan has."""
        self._largest_id += 1
        return self._largest_id

    def refuse(self, what: str, why: str, remedy: str = "") -> None:
        """Note why something stays on Spark."""
        reason = Reason(what, why, remedy)
        if reason not in self.reasons:
            self.reasons.append(reason)

    def read_all(self, nodes: tuple[Node, ...]) -> tuple[Expression, ...] | None:
        """Read several expressions; None if one of them cannot be read. All are read, to collect every reason."""
        read = [self.read(node) for node in nodes]
        found = tuple(expression for expression in read if expression is not None)
        return found if len(found) == len(read) else None

    def read(self, node: Node) -> Expression | None:
        """Our expression for a node, or None and a reason."""
        match node.name:
            case "AttributeReference" | "NamedLambdaVariable":
                return self.column(node)
            case "LambdaFunction":
                return self._lambda(node)
            case "Literal":
                return self._literal(node)
            case "Alias":
                return self.read(node.children[0])
            case _:
                if self.subquery is not None and is_subquery(node):
                    return self.subquery(node)
                if self.window is not None and node.name == "WindowExpression":
                    return self.window(node)
                return self._applied(node)

    def column(self, node: Node) -> Column | None:
        """The column of a named expression."""
        kind = data_type(node.type)
        if node.id is None:
            self.refuse(str(node), "it is not resolved")
        elif kind is None:
            self.refuse(
                node.label, f"the type {node.type} is not supported yet", "leave the column out or cast it"
            )
        else:
            return Column(node.id, node.label, kind, node.nullable)
        return None

    def _literal(self, node: Node) -> Expression | None:
        kind = data_type(node.type)
        made = None if kind is None else literal(node.value, kind)
        if made is None:
            self.refuse(str(node), f"a constant of type {node.type} with this value is not supported yet")
        return made

    def _lambda(self, node: Node) -> Expression | None:
        """The body, and then the parameters, which are columns that occur nowhere else."""
        parts = self.read_all(node.children)
        return None if parts is None else Call(LAMBDA, parts, parts[0].type, parts[0].nullable)

    def _applied(self, node: Node) -> Expression | None:
        name = OF_ARRAYS.get(node.name, node.name) if node.type.startswith("array<") else node.name
        entry = entry_for(name)
        if entry is not None and entry.rewrite is not None:
            rewritten = entry.rewrite(node)
            if rewritten.name != node.name:
                return self.read(rewritten)
            node = rewritten
        arguments = self.read_all(node.children)
        if entry is None or entry.exactness is Exactness.UNSUPPORTED:
            why = "the function is not supported yet" if entry is None else entry.note
            self.refuse(str(node), why, "" if entry is None else entry.remedy)
            return None
        kind = data_type(node.type)
        if kind is None:
            self.refuse(str(node), f"the type {node.type} is not supported yet")
        if arguments is None or kind is None:
            return None
        if entry.requires is not None and self._settings.get(entry.requires[0]) != entry.requires[1]:
            self.refuse(str(node), f"it is supported only with {'='.join(entry.requires)}")
            return None
        zones = self._zones(entry, node)
        if zones is None:
            return None
        made = self._made(entry, node, arguments, kind, zones)
        if isinstance(made, Refusal):
            self.refuse(str(node), made.why, made.remedy)
            return None
        return made

    def _made(
        self,
        entry: Entry,
        node: Node,
        arguments: tuple[Expression, ...],
        kind: DataType,
        zones: tuple[Expression, ...],
    ) -> Expression | Refusal:
        if node.name != "Cast" or not (kind.is_nested and arguments[0].type.is_nested):
            return entry.make(node, arguments, kind, zones)
        inner = replace(node, nullable=True)
        return cast_nested(
            arguments[0],
            kind,
            lambda value, target: entry.make(inner, (value,), target),
            lambda type_: Column(self.fresh_id(), "part", type_, nullable=True),
        )

    def _zones(self, entry: Entry, node: Node) -> tuple[Expression, ...] | None:
        """The rules of the time zones that a node depends on."""
        found: list[Expression] = []
        for name in entry.zones(node) if entry.zones is not None else ():
            rules = self.zone(name)
            if rules is None:
                self.refuse(str(node), f"the time zone {name} is not known")
                return None
            found.append(Literal(rules, STRING))
        return tuple(found)


def _only_utc(name: str) -> str | None:
    return UTC if name in ("UTC", "Z", "Etc/UTC") else None
