"""How each entry of the expression registry is written in SQL: a file per family, by the name of Catalyst's class.

A placeholder in braces is a column: of the kind that it names, or of each kind of its class (`wallaby_lab.differential.
values.CLASSES`), e.g. `{string}`, `{number}`, `{any}`. Placeholders of one class are of one kind in one expression, and
sometimes of several; now and then a constant stands in place of one. A whole query names its `{table}`.

An entry without an example fails a test.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from wallaby.functions.catalyst.registry import FAMILIES
from wallaby_lab.differential.examples import (
    aggregates,
    arithmetic,
    casts,
    collections,
    conditionals,
    dates,
    others,
    predicates,
    strings,
    times,
)

EXAMPLES: Final = MappingProxyType(
    {
        **arithmetic.EXAMPLES,
        **predicates.EXAMPLES,
        **conditionals.EXAMPLES,
        **casts.EXAMPLES,
        **strings.EXAMPLES,
        **dates.EXAMPLES,
        **times.EXAMPLES,
        **collections.EXAMPLES,
        **aggregates.EXAMPLES,
        **others.EXAMPLES,
    }
)
WITHOUT_EXAMPLE: Final = others.WITHOUT_EXAMPLE
#: Entries whose examples are aggregates.
AGGREGATED: Final = frozenset(entry.catalyst for entry in FAMILIES["Aggregates"]) | {"UnscaledValue"}
#: The class by which a plan shows an entry, where that is another.
SHOWN_AS: Final = MappingProxyType(
    {
        "OnlyOfAGroupSet": "First",
        "ConcatOfArrays": "Concat",
        "ReverseOfArray": "Reverse",
        "SplitPart": "StringSplitSQL",
        **{name: "StaticInvoke" for name in strings.EXAMPLES if "#" in name},
        "ParseUrlEvaluator#evaluate": "Invoke",
        "StructsToJsonEvaluator#evaluate": "Invoke",
        "TemporalCast": "Cast",
        "CollectListUnordered": "CollectList",
        "CollectSetUnordered": "CollectSet",
    }
)
#: Entries that are differences of sums: where these cancel each other out, what is left is rounding.
CANCELLING: Final = frozenset(
    {"CovSample", "CovPopulation", "Corr", "RegrSXY", "RegrSlope", "RegrIntercept", "RegrR2"}
)
#: Entries whose floating-point results may differ in the last place from Spark's, as aggregates do, and why.
CLOSE: Final[MappingProxyType[str, str]] = MappingProxyType({})
