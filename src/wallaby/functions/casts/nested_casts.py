"""Casts of arrays, structs and maps: each part is cast by the rules of its types."""

from __future__ import annotations

from collections.abc import Callable

from wallaby.functions.entry import Refusal
from wallaby.relations.expression import Call, Column, Expression, Literal
from wallaby.relations.functions import FIELD, IS_NULL, LAMBDA
from wallaby.relations.types import BOOLEAN, INTEGER, DataType, Kind

#: Casts a flat value, or says why not.
Cast = Callable[[Expression, DataType], Expression | Refusal]
#: A new column of a type, for a lambda.
Fresh = Callable[[DataType], Column]


def cast_nested(value: Expression, target: DataType, cast: Cast, fresh: Fresh) -> Expression | Refusal:
    """Cast a nested value to another type of the same shape; fields of structs correspond by position."""
    source = value.type
    if source == target:
        return value
    if Kind.TIMESTAMP in (source.kind, target.kind):
        return Refusal("a cast of nested values that depends on the time zone is not supported")
    if not source.is_nested and not target.is_nested:
        return cast(value, target)
    if source.kind is not target.kind or len(source.children) != len(target.children):
        return Refusal(f"a cast from {source} to {target} is not supported")
    match target.kind:
        case Kind.ARRAY:
            element = fresh(source.element)
            made = cast_nested(element, target.element, cast, fresh)
            return made if isinstance(made, Refusal) else _over("transform", value, made, (element,), target)
        case Kind.MAP if source.children[0] == target.children[0]:
            key, item = map(fresh, source.children)
            made = cast_nested(item, target.children[1], cast, fresh)
            if isinstance(made, Refusal):
                return made
            return _over("transform_values", value, made, (key, item), target)
        case Kind.MAP:
            return Refusal("a cast of a map's keys is not supported")
        case _:
            return _struct(value, target, cast, fresh)


def _over(
    function: str, value: Expression, body: Expression, own: tuple[Column, ...], target: DataType
) -> Expression:
    lambda_ = Call(LAMBDA, (body, *own), body.type, body.nullable)
    return Call(function, (value, lambda_), target, value.nullable)


def _struct(value: Expression, target: DataType, cast: Cast, fresh: Fresh) -> Expression | Refusal:
    parts: list[Expression] = []
    for place, (source, wanted) in enumerate(zip(value.type.children, target.children, strict=True)):
        field = Call(FIELD, (value, Literal(place, INTEGER)), source, nullable=True)
        made = cast_nested(field, wanted, cast, fresh)
        if isinstance(made, Refusal):
            return made
        parts.append(made)
    whole = Call("struct", tuple(parts), target, nullable=False)
    missing = Call(IS_NULL, (value,), BOOLEAN, nullable=False)
    return Call("if", (missing, Literal(None, target), whole), target, value.nullable)
