"""Text. Spark counts code points and compares bytes; only strings with the binary collation are read at all."""

from __future__ import annotations

from typing import Final

from wallaby.catalyst.data_types import INTEGRAL, TEXT
from wallaby.catalyst.entry import Entry, Refusal, exact, guarded, unsupported
from wallaby.catalyst.node import Node
from wallaby.plan.expression import Call, Expression, Literal
from wallaby.plan.types import STRING, DataType

_REGEX: Final = "Java's regular expressions differ from those of the kernels"
_CASE: Final = "text beyond ASCII follows Java's rules ('ß' becomes 'SS'), not the kernel's"


def _like(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    value, pattern = arguments
    escape = str(node.field("escapeChar"))
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return Refusal("the pattern of LIKE is not a constant")
    if not _valid_pattern(pattern.value, escape):
        return Refusal("the pattern of LIKE escapes a character that needs no escape, which Spark refuses")
    return Call(entry.function, (value, pattern, Literal(escape, STRING)), kind, node.nullable)


def _valid_pattern(pattern: str, escape: str) -> bool:
    """An escape must be followed by %, _ or itself."""
    position = pattern.find(escape)
    while position >= 0:
        if pattern[position + 1 : position + 2] not in ("%", "_", escape):
            return False
        position = pattern.find(escape, position + 2)
    return True


def _concat(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    if not arguments:
        return Literal("", STRING)
    return Call(entry.function, arguments, kind, node.nullable)


def _trim(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    if len(arguments) != 1:
        return Refusal("trimming other characters than spaces has no kernel yet")
    return Call(entry.function, arguments, kind, node.nullable)


ENTRIES: Final = (
    exact("StartsWith", "starts_with", TEXT),
    exact("EndsWith", "ends_with", TEXT),
    exact("Contains", "contains", TEXT),
    guarded("Like", "like", TEXT, guard="the pattern is a constant, and valid", build=_like),
    guarded(
        "Substring", "substring", TEXT, INTEGRAL, guard="position 0 is 1; negative ones count from the end"
    ),
    guarded("Upper", "upper", TEXT, guard=_CASE),
    guarded("Lower", "lower", TEXT, guard=_CASE),
    guarded("Concat", "concat", TEXT, guard="NULL if any argument is", build=_concat),
    exact("Length", "length", TEXT),
    guarded("StringTrim", "trim", TEXT, guard="spaces only, no other white space", build=_trim),
    unsupported("RLike", _REGEX, "use LIKE, if the pattern allows it"),
    unsupported("RegExpExtract", _REGEX),
    unsupported("RegExpReplace", _REGEX),
    unsupported("LikeAll", "LIKE ALL has no kernel yet", "write it with AND"),
    unsupported("LikeAny", "LIKE ANY has no kernel yet", "write it with OR"),
)
