"""Hashes, and numbers and bytes as text."""

from __future__ import annotations

from typing import Final

from wallaby.catalyst.data_types import BINARY, INTEGRAL, ORDERED, TEXT
from wallaby.catalyst.node import Node
from wallaby.functions.catalyst.arithmetic import fails
from wallaby.functions.catalyst.entry import Entry, Refusal, exact, guarded
from wallaby.relations.expression import Call, Expression, Literal
from wallaby.relations.types import DataType, Kind

_SEEDED: Final = "bit for bit, since people partition by it"
_LONG: Final = frozenset({Kind.LONG})


def _seeded(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """The seed comes first."""
    seed = node.field("seed")
    if not isinstance(seed, int) or not arguments:
        return Refusal("it hashes nothing")
    return Call(entry.function, (Literal(seed, kind), *arguments), kind, node.nullable)


ENTRIES: Final = (
    exact("Md5", "md5", BINARY),
    exact("Sha1", "sha1", BINARY),
    guarded("Sha2", "sha2", BINARY, INTEGRAL, guard="of 0, 224, 256, 384 and 512 bits, else NULL"),
    exact("Crc32", "crc32", BINARY),
    guarded("Murmur3Hash", "murmur3", ORDERED, guard=_SEEDED, build=_seeded),
    guarded("XxHash64", "xxhash64", ORDERED, guard=_SEEDED, build=_seeded),
    exact("Hex", "hex", TEXT | BINARY | _LONG),
    guarded("Unhex", "unhex", TEXT, guard="other characters are an error or NULL", build=fails),
    guarded("UnBase64", "unbase64", TEXT, guard="as Java reads MIME", build=fails),
)
