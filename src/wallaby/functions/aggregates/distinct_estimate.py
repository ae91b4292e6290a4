"""The approximate number of distinct values: Spark's own sketch, by its hashes and its tables."""

from __future__ import annotations

from typing import Final

from wallaby.catalyst.data_types import ORDERED
from wallaby.catalyst.node import Node
from wallaby.functions.aggregates import sketches
from wallaby.functions.aggregates.wrappers import _SKETCH, normalized
from wallaby.functions.entry import Entry, Refusal, guarded
from wallaby.functions.family import Family
from wallaby.functions.scalar_sql import ScalarSql, of_kinds, template
from wallaby.relations import functions
from wallaby.relations.expression import Aggregation, Call, Expression, Literal
from wallaby.relations.types import BOOLEAN, INTEGER, LONG, DataType, Kind, array

_SKETCH_SEED: Final = 42


def _sketch(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], _kind: DataType
) -> Expression | Refusal:
    """The set of places and ranks of the values' hashes, from which the aggregation computes the estimate."""
    if not isinstance(node.value, str):
        return Refusal("this precision is not supported")
    value = normalized(arguments[0])
    bits = Literal(int(node.value.partition(";")[0]), INTEGER)
    hashed = Call("xxhash64", (Literal(_SKETCH_SEED, LONG), value), LONG, nullable=False)
    place = Call("sketch_place", (hashed, bits), INTEGER, value.nullable)
    if value.nullable:
        absent = Call(functions.IS_NOT_NULL, (value,), BOOLEAN, nullable=False)
        place = Call("case", (absent, place), INTEGER, nullable=True)
    return Aggregation(entry.function, (place,), array(INTEGER), nullable=False)


FAMILY: Final = Family(
    "Aggregates",
    (
        guarded(
            _SKETCH,
            "collect_set",
            ORDERED,
            guard="Spark's own sketch, by its hashes and its tables, for deviations from 0.0022 to 0.27",
            build=_sketch,
            examples=(
                "approx_count_distinct({whole})",
                "approx_count_distinct({string}, 0.02)",
                "approx_count_distinct({double})",
                "approx_count_distinct({date}) filter (where {boolean})",
            ),
        ),
    ),
    also={
        "sketch_place": ScalarSql(
            2, template("wallaby_sketch_place({0}, {1})"), reason=of_kinds(Kind.LONG, Kind.INTEGER)
        ),
        "sketch_estimate": ScalarSql(
            2, template("wallaby_sketch_estimate({0}, {1})"), reason=of_kinds(Kind.ARRAY, Kind.STRING)
        ),
    },
    arrow_functions=(*sketches.FUNCTIONS,),
)
