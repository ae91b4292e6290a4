"""The nodes of an optimized plan as `PlanWriter.java` writes them: data only, nothing decided yet.

Everything that Catalyst says about a node is here, under Catalyst's own names. If something is not where it should be
(in another version of Spark, for example), `UnreadablePlanError` is raised, which `read_plan` turns into a reason.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from wallaby.errors import WallabyError

_SPARK: Final = "org.apache.spark.sql."
_COLUMN: Final = "org.apache.spark.sql.catalyst.expressions.AttributeReference"
#: What stands in the place of a column that was written before; the id of the column follows.
_AGAIN: Final = "@"
_SHOWN_CHARACTERS: Final = 100
_SCHEMAS_KEPT: Final = 256


class UnreadablePlanError(WallabyError):
    """A plan does not have the expected form. Never leaves this package: it becomes a reason."""

    condition = "WALLABY_UNREADABLE_PLAN"


@dataclass(frozen=True, slots=True)
class Node:
    """A Catalyst operator or expression."""

    class_name: str
    children: tuple[Node, ...] = ()
    fields: Mapping[str, object] | None = None
    #: For an expression: its type as text, whether it may be NULL, ANSI, TRY or LEGACY.
    type: str = ""
    nullable: bool = True
    mode: str = ""
    #: For a named expression: its id and name.
    id: int | None = None
    label: str = ""
    #: For a named expression: is it a session window, which Spark extends while it groups by it?
    is_session: bool = False
    #: For a literal, its value; for a set of literals, their values.
    value: object = None
    #: For an expression whose result depends on it: the version of Java that runs Spark.
    java: int = 0
    #: The output columns of the root, of unions and of generators.
    output: tuple[Node, ...] = ()

    @property
    def name(self) -> str:
        """The class name without its package; the full name if the class is not Spark's."""
        return self.class_name.rpartition(".")[2] if self.class_name.startswith(_SPARK) else self.class_name

    def field(self, name: str) -> object:
        """A field by its name in the case class."""
        if self.fields is None or name not in self.fields:
            raise UnreadablePlanError(f"{self.name} has no field {name!r}.")
        return self.fields[name]

    def node(self, name: str) -> Node:
        """A field that is a node."""
        found = self.field(name)
        if not isinstance(found, Node):
            raise UnreadablePlanError(f"{self.name}.{name} is not an expression.")
        return found

    def nodes(self, name: str) -> tuple[Node, ...]:
        """A field that is a sequence of nodes."""
        found = self.field(name)
        if not isinstance(found, list) or not all(isinstance(item, Node) for item in found):
            raise UnreadablePlanError(f"{self.name}.{name} is not a list of expressions.")
        return tuple(found)

    def flag(self, name: str) -> bool:
        """A field that is true or false."""
        found = self.field(name)
        if not isinstance(found, bool):
            raise UnreadablePlanError(f"{self.name}.{name} is neither true nor false.")
        return found

    def word(self, name: str) -> str:
        """A field that is one of a closed set of Scala objects, such as `Inner` or `Ascending`."""
        found = self.field(name)
        if not isinstance(found, dict) or not isinstance(found.get("opaque"), str):
            raise UnreadablePlanError(f"{self.name}.{name} is not a name.")
        return str(found["opaque"]).rpartition(".")[2].rstrip("$")

    def part(self, name: str, inner: str) -> Node:
        """A node inside a field that is one of a closed set of Scala classes."""
        found = self.field(name)
        node = found.get(inner) if isinstance(found, dict) else None
        if not isinstance(node, Node):
            raise UnreadablePlanError(f"{self.name}.{name} has no {inner}.")
        return node

    def __str__(self) -> str:
        text = _text(self)
        return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"


@dataclass(frozen=True, slots=True)
class PlanText:
    """A whole plan, the settings that its meaning depends on, and the largest column id in it."""

    root: Node
    settings: Mapping[str, str]
    streaming: bool
    largest_id: int


@dataclass(frozen=True, slots=True)
class PlanPart:
    """The columns of a part of a plan, and its sources: their classes, and their sizes as Spark estimates them."""

    output: tuple[Node, ...]
    sources: tuple[tuple[str, int], ...]


def decode(packed: str) -> PlanText:
    """Decode the answer of `PlanWriter.write`."""
    decoder = _Decoder()
    with _damaged_text_is_unreadable():
        plan = decoder.unpacked(packed)
        root, settings, streaming = plan["plan"], plan["settings"], plan["streaming"]
    if not isinstance(root, Node):
        raise UnreadablePlanError("The plan's text has no root.")
    return PlanText(root, settings, bool(streaming), decoder.largest_id)


def decode_part(packed: str) -> PlanPart:
    """Decode the answer of `PlanWriter.describe`."""
    with _damaged_text_is_unreadable():
        part = _Decoder().unpacked(packed)
        sources = ((str(name).rpartition(".")[2], int(size)) for name, size in part["sources"])
        return PlanPart(tuple(part["output"]), tuple(sources))


class _Decoder:
    """Makes the nodes of one text. A column that the text repeats is one node."""

    def __init__(self) -> None:
        self.largest_id = 0
        self._columns: dict[int, Node] = {}

    def unpacked(self, packed: str) -> Any:
        return json.loads(zlib.decompress(base64.b64decode(packed, validate=True)), object_hook=self._made)

    def _made(self, raw: dict[str, object]) -> object:
        if _AGAIN in raw and isinstance(raw[_AGAIN], int):
            return self._columns[raw[_AGAIN]]
        if "c" not in raw:
            return raw
        if "k" not in raw:
            schema = raw.get("schema")
            return {**raw, "schema": _schema(schema)} if isinstance(schema, str) else raw
        node = _node(raw)
        if node.id is not None:
            self.largest_id = max(self.largest_id, node.id)
            if node.class_name == _COLUMN:
                self._columns[node.id] = node
        return node


@lru_cache(maxsize=_SCHEMAS_KEPT)
def _schema(text: str) -> object:
    """The schema of a table, which every query over it has; nobody changes it."""
    return json.loads(text)


@contextmanager
def _damaged_text_is_unreadable() -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError, zlib.error) as error:
        raise UnreadablePlanError(f"The plan's text is damaged: {error}.") from error


def _node(raw: dict[str, object]) -> Node:
    identity = raw.get("x")
    column_id, label = identity if isinstance(identity, list) else (None, "")
    children, fields, output = raw["k"], raw.get("f"), raw.get("o", ())
    if not isinstance(children, list) or not isinstance(output, list | tuple):
        raise UnreadablePlanError("A node's children are not a list.")
    return Node(
        class_name=str(raw["c"]),
        children=tuple(children),
        fields=fields if isinstance(fields, dict) else None,
        type=str(raw.get("t", "")),
        nullable=bool(raw.get("n", True)),
        mode=str(raw.get("m", "")),
        id=column_id,
        label=label,
        is_session=bool(raw.get("s", False)),
        value=raw.get("v"),
        java=_whole(raw.get("j", 0)),
        output=tuple(output),
    )


def _whole(value: object) -> int:
    if not isinstance(value, int):
        raise UnreadablePlanError("The version of a node is not a number.")
    return value


def _text(node: Node) -> str:
    """An expression as text for users, shortened by its reader."""
    match node.name:
        case "AttributeReference":
            return node.label
        case "Literal":
            value = next(iter(node.value.values())) if isinstance(node.value, dict) else node.value
            return repr(value) if isinstance(value, str) else str(value)
        case "Alias":
            return _text(node.children[0])
        case name:
            return f"{name}({', '.join(_text(child) for child in node.children)})"
