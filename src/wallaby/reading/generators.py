"""Read generators such as explode: as an `Unnest`, or as an `Expand` over values that the query itself lists.

`explode(array(a, b))` gives every row once with a and once with b, as the expansion of grouping sets does.
"""

from __future__ import annotations

import re
from typing import Final

from wallaby.catalyst.data_types import data_type, literal
from wallaby.catalyst.node import Node
from wallaby.reading.expressions import ExpressionReader
from wallaby.relations.expression import Call, Column, Expression, Literal, Named
from wallaby.relations.relation import Expand, Project, Relation, Unnest
from wallaby.relations.types import BOOLEAN, INTEGER, STRING, DataType, Kind

#: Every listed row is a projection of the plan.
_ROWS_MAX: Final = 256
#: Generators that make a row of each element of an array.
_UNNESTED: Final = frozenset({"Explode", "Inline", "PosExplode"})
#: Generators whose arguments list the rows.
GENERATORS: Final = ("Explode", "Inline", "JsonTuple", "PosExplode", "Stack")
_PLAIN_NAME: Final = re.compile("[A-Za-z0-9_]+")
_FLAGS: Final = DataType(Kind.ARRAY, children=(BOOLEAN,))


def read_generate(node: Node, child: Relation | None, reader: ExpressionReader) -> Relation | None:
    """Read a `Generate` over its child, which is None if it could not be read."""
    generator = node.node("generator")
    columns = [reader.column(attribute) for attribute in node.nodes("generatorOutput")]
    made = tuple(column for column in columns if column is not None)
    if generator.name == "ReplicateRows":
        return _replicated(node, generator, child, made if len(made) == len(columns) else None, reader)
    rows = _rows(generator, reader)
    if not rows and generator.name in _UNNESTED:
        return _unnested(node, generator, child, made if len(made) == len(columns) else None, reader)
    if not rows:
        reader.refuse(str(generator), "this generator is not supported")
        return None
    read = [row for row in rows if row is not None and len(row) == len(columns)]
    if child is None or len(made) < len(columns) or len(read) < len(rows):
        return None
    kept = _kept(node, child)
    return Expand(child, tuple((*kept, *row) for row in read), (*kept, *made))


def _kept(node: Node, child: Relation) -> tuple[Column, ...]:
    shown = {attribute.id for attribute in node.output}
    return tuple(column for column in child.columns if column.id in shown)


def _unnested(
    node: Node,
    generator: Node,
    child: Relation | None,
    made: tuple[Column, ...] | None,
    reader: ExpressionReader,
) -> Relation | None:
    """Make a row of each element of an array, or of each pair of a map."""
    array = reader.read(generator.children[0])
    if array is None or child is None or made is None:
        return None
    if array.type.kind is Kind.MAP:
        entries = DataType(
            Kind.ARRAY,
            children=(DataType(Kind.STRUCT, children=array.type.children, names=("key", "value")),),
        )
        array = Call("map_entries", (array,), entries, array.nullable)
        fields = True
    else:
        fields = generator.name == "Inline"
    position = made[0] if generator.name == "PosExplode" else None
    values = made if position is None else made[1:]
    return Unnest(child, array, _kept(node, child), position, values, fields, node.flag("outer"))


def _replicated(
    node: Node,
    generator: Node,
    child: Relation | None,
    made: tuple[Column, ...] | None,
    reader: ExpressionReader,
) -> Relation | None:
    """Repeat each row as often as the first argument says: Catalyst's last step of INTERSECT ALL and EXCEPT ALL."""
    arguments = reader.read_all(generator.children)
    if arguments is None or child is None or made is None:
        return None
    count, *values = arguments
    kept = _kept(node, child)
    times = Call("array_repeat", (Literal(True, BOOLEAN), count), _FLAGS, count.nullable)
    one = Column(reader.fresh_id(), "one", BOOLEAN, nullable=False)
    repeated = Unnest(child, times, child.columns, None, (one,), fields=False, outer=False)
    shown = (*(Named(column, column) for column in kept), *map(Named, made, values))
    return Project(repeated, shown)


def _rows(generator: Node, reader: ExpressionReader) -> list[tuple[Expression, ...] | None] | None:
    """The rows that a generator lists for each input row; None if it does not list them."""
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
        case "JsonTuple":
            return _members(generator.children, reader)
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
    """Are the keys different constants, none of them NULL? Other keys may be equal, which is an error for each row."""
    values = [repr(node.value) for node in nodes]
    constant = all(node.name == "Literal" and node.value is not None for node in nodes)
    return constant and len(set(values)) == len(values)


def _constants(listed: Node) -> list[tuple[Expression, ...] | None] | None:
    """The elements of an array of constants, which Catalyst has folded into one constant."""
    kind = data_type(listed.type)
    made = literal(listed.value, kind) if kind is not None and kind.kind is Kind.ARRAY else None
    if made is None or not isinstance(made.value, tuple) or len(made.value) > _ROWS_MAX:
        return None
    return [(Literal(value, made.type.element),) for value in made.value]


def _inlined(listed: Node, reader: ExpressionReader) -> list[tuple[Expression, ...] | None] | None:
    structs = listed.children
    if listed.name != "CreateArray" or len(structs) > _ROWS_MAX:
        return None
    if not all(struct.name == "CreateNamedStruct" for struct in structs):
        return None
    return [reader.read_all(struct.children[1::2]) for struct in structs]


def _members(
    arguments: tuple[Node, ...], reader: ExpressionReader
) -> list[tuple[Expression, ...] | None] | None:
    """One row: the members of a JSON object with the given names, each read by its path."""
    read = reader.read_all(arguments)
    if read is None:
        return [None]
    text, *names = read
    if not all(isinstance(name, Literal) and _PLAIN_NAME.fullmatch(str(name.value)) for name in names):
        return None
    paths = (Literal(f"$.{name.value}", STRING) for name in names if isinstance(name, Literal))
    return [tuple(Call("get_json_object", (text, path), STRING, nullable=True) for path in paths)]


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
