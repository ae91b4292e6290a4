"""Reading generators: explode and its like over values that the query itself lists, as an `Expand`.

`explode(array(a, b))` gives every row once with a and once with b, which is what grouping sets begin with. Arrays and
maps that are values of a column have no such list; they stay on Spark.
"""

from __future__ import annotations

from typing import Final

from wallaby.catalyst.data_types import data_type, literal
from wallaby.catalyst.expressions import ExpressionReader
from wallaby.catalyst.node import Node
from wallaby.plan.expression import Expression, Literal
from wallaby.plan.relation import Expand, Relation
from wallaby.plan.types import INTEGER

#: Every listed row is a projection of the plan.
_ROWS_MAX: Final = 256
#: Generators whose rows are listed by what they are applied to.
GENERATORS: Final = ("Explode", "Inline", "PosExplode", "Stack")


def read_generate(node: Node, child: Relation | None, reader: ExpressionReader) -> Relation | None:
    """A `Generate` over its child, which is None if it could not be read."""
    generator = node.node("generator")
    rows = _rows(generator, reader)
    if not rows:
        reader.refuse(
            str(generator), "explode and its like are run here only over values that the query lists"
        )
        return None
    columns = [reader.column(attribute) for attribute in node.nodes("generatorOutput")]
    made = tuple(column for column in columns if column is not None)
    read = [row for row in rows if row is not None and len(row) == len(columns)]
    if child is None or len(made) < len(columns) or len(read) < len(rows):
        return None
    shown = {attribute.id for attribute in node.output}
    kept = tuple(column for column in child.columns if column.id in shown)
    return Expand(child, tuple((*kept, *row) for row in read), (*kept, *made))


def _rows(generator: Node, reader: ExpressionReader) -> list[tuple[Expression, ...] | None] | None:
    """The rows that a generator makes of each row; None if it does not list them."""
    match generator.name:
        case "Explode":
            return _exploded(generator.children[0], reader)
        case "PosExplode":
            exploded = _exploded(generator.children[0], reader)
            if exploded is None:
                return None
            return [
                None if row is None else (Literal(place, INTEGER), *row) for place, row in enumerate(exploded)
            ]
        case "Inline":
            return _inlined(generator.children[0], reader)
        case "Stack":
            return _stacked(generator.children, reader)
        case _:
            return None


def _exploded(listed: Node, reader: ExpressionReader) -> list[tuple[Expression, ...] | None] | None:
    values = listed.children
    match listed.name:
        case "CreateArray" if len(values) <= _ROWS_MAX:
            return [reader.read_all((value,)) for value in values]
        case "CreateMap" if len(values) <= 2 * _ROWS_MAX and _are_keys(values[::2]):
            return [reader.read_all(pair) for pair in zip(values[::2], values[1::2], strict=True)]
        case "Literal":
            return _constants(listed)
        case _:
            return None


def _are_keys(nodes: tuple[Node, ...]) -> bool:
    """Different constants and none of them NULL: others may be equal, which is an error for each row."""
    values = [repr(node.value) for node in nodes]
    constant = all(node.name == "Literal" and node.value is not None for node in nodes)
    return constant and len(set(values)) == len(values)


def _constants(listed: Node) -> list[tuple[Expression, ...] | None] | None:
    """An array of constants, which Catalyst has made one."""
    values = listed.value.get("array") if isinstance(listed.value, dict) else None
    if not isinstance(values, list) or not listed.type.startswith("array<") or len(values) > _ROWS_MAX:
        return None
    kind = data_type(listed.type.removeprefix("array<").removesuffix(">"))
    made = [None if kind is None else literal(value, kind) for value in values]
    known = [(value,) for value in made if value is not None]
    return None if len(known) < len(made) else list(known)


def _inlined(listed: Node, reader: ExpressionReader) -> list[tuple[Expression, ...] | None] | None:
    structs = listed.children
    if listed.name != "CreateArray" or len(structs) > _ROWS_MAX:
        return None
    if not all(struct.name == "CreateNamedStruct" for struct in structs):
        return None
    return [reader.read_all(struct.children[1::2]) for struct in structs]


def _stacked(
    arguments: tuple[Node, ...], reader: ExpressionReader
) -> list[tuple[Expression, ...] | None] | None:
    count, *values = arguments
    if count.name != "Literal" or not isinstance(count.value, int) or not 0 < count.value <= _ROWS_MAX:
        return None
    width = -(-len(values) // count.value)
    rows: list[tuple[Expression, ...] | None] = []
    for place in range(count.value):
        row = reader.read_all(tuple(values[place * width : (place + 1) * width]))
        kinds = [data_type(value.type) for value in values[:width]]
        if row is None or None in kinds:
            rows.append(None)
            continue
        missing = tuple(Literal(None, kind) for kind in kinds[len(row) :] if kind is not None)
        rows.append((*row, *missing))
    return rows
