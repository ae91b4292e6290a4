"""Regular expressions: a constant pattern that the kernels' engines read as Java does."""

from __future__ import annotations

from typing import Final

from wallaby.catalyst.data_types import INTEGRAL, TEXT
from wallaby.catalyst.node import Node
from wallaby.functions.catalyst.entry import Entry, Refusal, guarded
from wallaby.functions.java_regex import Pattern, UnsafePatternError, replacement, translate
from wallaby.relations.expression import Call, Expression, Literal
from wallaby.relations.types import DataType

_CONSTANT: Final = (
    "the pattern is a constant without what only Java has: Unicode's classes, word boundaries, references to groups, "
    "possessive quantifiers, classes within classes, flags but a leading (?i)"
)


_EMPTY: Final = Refusal(
    "the pattern may match nothing, and Java finds nothing inside of some characters", "use + for *"
)


def _read(argument: Expression) -> Pattern | Refusal:
    if not isinstance(argument, Literal) or not isinstance(argument.value, str):
        return Refusal("the pattern is not a constant")
    try:
        return translate(argument.value)
    except UnsafePatternError as error:
        return Refusal(f"only Java reads the regular expression {argument} as Java does: {error}", "use LIKE")


def _matches(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    pattern = _read(arguments[1])
    return pattern if isinstance(pattern, Refusal) else Call(entry.function, arguments, kind, node.nullable)


def _group(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    pattern, group = _read(arguments[1]), arguments[2]
    if isinstance(pattern, Refusal):
        return pattern
    if not isinstance(group, Literal) or not isinstance(group.value, int):
        return Refusal("the number of the group is not a constant")
    if pattern.empty and entry.function == "regexp_extract_all":
        return _EMPTY
    if not 0 <= group.value <= pattern.groups:
        return Refusal("the pattern has no such group, which Spark refuses")
    return Call(entry.function, arguments, kind, node.nullable)


def _position(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    made = _group(entry, node, arguments, kind)
    return made if isinstance(made, Refusal) else Call(entry.function, arguments[:2], kind, node.nullable)


def _replace(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    pattern, by, start = _read(arguments[1]), arguments[2], arguments[3]
    if isinstance(pattern, Refusal):
        return pattern
    if pattern.empty:
        return _EMPTY
    if not isinstance(by, Literal) or not isinstance(by.value, str):
        return Refusal("the replacement is not a constant")
    if not isinstance(start, Literal) or start.value != 1:
        return Refusal("the position is not 1")
    try:
        replacement(by.value, pattern.groups)
    except UnsafePatternError as error:
        return Refusal(str(error))
    return Call(entry.function, arguments[:3], kind, node.nullable)


ENTRIES: Final = (
    guarded("RLike", "regexp_matches", TEXT, guard=_CONSTANT, build=_matches),
    guarded("RegExpExtract", "regexp_extract", TEXT, TEXT, INTEGRAL, guard=_CONSTANT, build=_group),
    guarded("RegExpExtractAll", "regexp_extract_all", TEXT, TEXT, INTEGRAL, guard=_CONSTANT, build=_group),
    guarded("RegExpInStr", "regexp_position", TEXT, TEXT, INTEGRAL, guard=_CONSTANT, build=_position),
    guarded("RegExpReplace", "regexp_replace", TEXT, TEXT, TEXT, INTEGRAL, guard=_CONSTANT, build=_replace),
)
