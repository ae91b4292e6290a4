"""How each entry of the expression registry is written in SQL, by the name of Catalyst's class.

The examples are with the functions, in `wallaby.functions`. A placeholder in braces is a column: of the kind that it
names, or of each kind of its class (`CLASSES` in `values`), e.g. `{string}`, `{number}`, `{any}`. Placeholders of one
class have the same kind in one expression, and sometimes different ones; sometimes a constant replaces one. A whole
query names its `{table}`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from wallaby.functions.registry import FAMILIES, REGISTRY

EXAMPLES: Final = MappingProxyType(
    {entry.catalyst: entry.examples for entry in REGISTRY.values() if entry.examples}
)
#: Native entries that may be missing from every optimized plan, and why they need no example.
WITHOUT_EXAMPLE: Final = MappingProxyType(
    {entry.catalyst: entry.without_example for entry in REGISTRY.values() if entry.without_example}
)
#: Entries whose examples are aggregates.
AGGREGATED: Final = frozenset(entry.catalyst for entry in FAMILIES["Aggregates"]) | {"UnscaledValue"}
#: The class that appears in a plan for an entry, if that is another; calls of Java methods share a class.
SHOWN_AS: Final = MappingProxyType(
    {
        **{name: "StaticInvoke" for name in EXAMPLES if "#" in name},
        **{entry.catalyst: entry.shown_as for entry in REGISTRY.values() if entry.shown_as},
    }
)
#: Entries that are differences of sums: where these cancel each other, only rounding errors remain.
CANCELLING: Final = frozenset(entry.catalyst for entry in REGISTRY.values() if entry.cancels)
#: Entries whose floating-point results may differ in the last place from Spark's, as aggregates do, and why.
CLOSE: Final[MappingProxyType[str, str]] = MappingProxyType({})
