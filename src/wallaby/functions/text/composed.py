"""Compose texts from others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from wallaby.catalyst.data_types import BINARY, INTEGRAL, INTS, TEXT
from wallaby.catalyst.node import Node
from wallaby.functions.entry import Entry, Refusal, exact, fails, guarded
from wallaby.functions.family import Family
from wallaby.functions.scalar_sql import MANY, Reason, ScalarSql, in_ansi_mode, not_supported
from wallaby.functions.size import ONE_OF, TOGETHER, Sizes, by_call, constant_number, growing, number
from wallaby.functions.within_limit import checked
from wallaby.relations import functions
from wallaby.relations.expression import Call, EvalMode, Expression, Literal
from wallaby.relations.types import STRING, DataType, Kind
from wallaby.sql.words import case, error

_SPECIFIER: Final = re.compile(r"%(?:(?P<sign>[%n])|(?:(?P<place>[1-9][0-9]?)\$)?(?P<kind>[sd]))")
#: So many texts are joined one after the other.
_IN_ROW: Final = 3
_SIGNS: Final = {"%": "%", "n": "\n"}
_PERCENT: Final = (Literal("%", STRING),)


def _read_concat(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    if not arguments:
        return Literal("", STRING)
    return Call(entry.function, arguments, kind, node.nullable)


def _format_string(
    _entry: Entry, _node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Concatenate the pieces of the pattern and the arguments as texts; NULL is written as `null`."""
    pattern, *values = arguments
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return Refusal("the pattern is not a constant", "write the pattern as a constant")
    pieces: list[Expression] = [Literal("", STRING)]
    end = taken = 0
    for found in _SPECIFIER.finditer(pattern.value):
        pieces.append(Literal(pattern.value[end : found.start()], STRING))
        end = found.end()
        if found["sign"] is not None:
            pieces.append(Literal(_SIGNS[found["sign"]], STRING))
            continue
        place = int(found["place"]) - 1 if found["place"] else taken
        taken += not found["place"]
        kinds = INTEGRAL if found["kind"] == "d" else INTEGRAL | TEXT | {Kind.BOOLEAN}
        if not 0 <= place < len(values) or values[place].type.kind not in kinds:
            return Refusal(f"%{found['kind']} stands for no argument, or for one of another type")
        pieces.append(_written(values[place]))
    pieces.append(Literal(pattern.value[end:], STRING))
    if any(
        isinstance(piece, Literal) and "%" in str(piece.value) for piece in pieces if piece not in _PERCENT
    ):
        return Refusal("a pattern with other specifiers than %s and %d is not supported yet")
    return Call("concat", tuple(pieces), kind, nullable=False)


def _written(value: Expression) -> Expression:
    text = value if value.type.kind is Kind.STRING else Call("cast", (value,), STRING, value.nullable)
    return Call(functions.COALESCE, (text, Literal("null", STRING)), STRING, nullable=False)


def _repeat(call: Call, sql: Sequence[str]) -> str:
    def size(value: str, times: str) -> str:
        return f"CAST(strlen({value}) AS DOUBLE) * {times}"

    return checked(call, sql, size, lambda value, times: f"repeat({value}, {times})")


def _repeated_within(call: Call) -> tuple[Sequence[float], float] | None:
    times = constant_number(call, 1)
    return None if times is None else ((max(times, 0), 0), 0)


def _repeated_size(call: Call, sizes: Sizes) -> tuple[str, bool] | None:  # noqa: ARG001 - the signature of a formula
    times = sizes.values[1]
    return None if times is None else (f"{sizes.bytes[0]} * {number(times)}", True)


def _space(call: Call, sql: Sequence[str]) -> str:
    return checked(call, sql, lambda count: f"CAST({count} AS DOUBLE)", lambda count: f"repeat(' ', {count})")


def _spaces_within(call: Call) -> tuple[Sequence[float], float] | None:
    count = constant_number(call, 0)
    return None if count is None else ((0,), max(count, 0))


def _spaces_size(call: Call, sizes: Sizes) -> tuple[str, bool] | None:  # noqa: ARG001 - the signature of a formula
    count = sizes.values[0]
    return None if count is None else (number(count), True)


def _separated(call: Call) -> tuple[Sequence[float], float]:
    texts = len(call.arguments) - 1
    return (texts, *(1,) * texts), 0


def _concat_ws(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
    if len(sql) == 1:
        return case([(f"{sql[0]} IS NULL", "NULL")], "''")
    return f"concat_ws({', '.join(sql)})"


def _elt(call: Call, sql: Sequence[str]) -> str:
    choices = [(f"{sql[0]} = {number}", value) for number, value in enumerate(sql[1:], start=1)]
    outside = error("INVALID_ARRAY_INDEX", "The index of elt is out of bounds.")
    missing = [(f"{sql[0]} IS NULL", "NULL")]
    return case([*missing, *choices], outside if call.mode is EvalMode.ANSI else "NULL")


def _write_concat(call: Call, sql: Sequence[str]) -> str:
    """Join halves: each operator makes a text, and one after the other they would make many long ones."""
    if len(sql) <= _IN_ROW:
        return f"({' || '.join(sql)})"
    half = len(sql) // 2
    return f"({_write_concat(call, sql[:half])} || {_write_concat(call, sql[half:])})"


def _one_of(*kinds: Kind) -> Reason:
    """Refuse unless all arguments have the same kind."""

    def reason(call: Call) -> str | None:
        found = {argument.type.kind for argument in call.arguments}
        return None if len(found) == 1 and found <= set(kinds) else not_supported(call)

    return reason


FAMILY: Final = Family(
    "Text",
    (
        guarded(
            "Concat",
            "concat",
            TEXT | BINARY,
            guard="NULL if any argument is",
            build=_read_concat,
            sql=ScalarSql((1, MANY), _write_concat, reason=_one_of(Kind.STRING, Kind.BINARY), size=TOGETHER),
            examples=("concat({string}, {string}, 'x')", "{string} || {number}", "{binary} || {binary}"),
        ),
        exact(
            "ConcatWs",
            "concat_ws",
            TEXT,
            sql=ScalarSql((1, MANY), _concat_ws, size=by_call(_separated)),
            examples=("concat_ws({string}, {string}, {digits})", "concat_ws('-', {string}, null, {string})"),
        ),
        guarded(
            "FormatString",
            "concat",
            guard="a constant pattern with %s of text, whole numbers and booleans, and %d of whole numbers",
            build=_format_string,
            examples=(
                "format_string('%s-%d%% %s', {string}, {whole}, {boolean})",
                "printf('%2$s %1$s%n', {int}, {string})",
            ),
        ),
        exact(
            "StringRepeat",
            "repeat",
            TEXT,
            INTS,
            sql=ScalarSql(2, _repeat, size=growing(_repeated_size, _repeated_within)),
            examples=("repeat({string}, {small})",),
        ),
        exact(
            "StringSpace",
            "space",
            INTS,
            sql=ScalarSql(1, _space, size=growing(_spaces_size, _spaces_within)),
            examples=("space({small})",),
        ),
        guarded(
            "Elt",
            "elt",
            INTS,
            TEXT,
            guard="an index outside is an error (ANSI) or NULL",
            build=fails,
            sql=ScalarSql((2, MANY), _elt, fallible=in_ansi_mode, size=ONE_OF),
            examples=("elt({small}, {string}, {string})", "elt(2, {string}, {string})"),
        ),
    ),
)
