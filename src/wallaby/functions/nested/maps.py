"""Maps. A map is an array of pairs; `wallaby.sql.types` explains why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wallaby.catalyst.data_types import ARRAYS, COMPARABLE, MAPS, TEXT
from wallaby.catalyst.node import Node
from wallaby.functions.entry import Entry, Refusal, exact, guarded, unsupported
from wallaby.functions.family import Family
from wallaby.functions.nested.arrays import split_text
from wallaby.functions.scalar_sql import MANY, ScalarSql, fine, template
from wallaby.functions.size import PARTS_TIMES, VALUE_BYTES, WITHIN, at_most, by_call
from wallaby.functions.words import always, bound, failing, has_null
from wallaby.relations.expression import Call, Expression, Literal
from wallaby.relations.types import STRING, DataType
from wallaby.sql.types import entry_type
from wallaby.sql.words import case, cast, error, field_sql, normalized, struct_sql

_KEYS: Final = "a NULL or duplicate key is an error"
_ONE_KEY: Final = ("spark.sql.mapKeyDedupPolicy", "EXCEPTION")


def _read_map_of_text(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    text, *patterns = arguments
    between = [split_text(pattern.value) if isinstance(pattern, Literal) else None for pattern in patterns]
    if None in between:
        return Refusal("a delimiter is a regular expression, not a plain text")
    return Call(entry.function, (text, *(Literal(one, STRING) for one in between)), kind, node.nullable)


def _keys(sql: str) -> str:
    return f"list_transform({sql}, lambda e: {field_sql('e', 0)})"


def _values(sql: str) -> str:
    return f"list_transform({sql}, lambda e: {field_sql('e', 1)})"


def checked_map(entries: str, type_: DataType) -> str:
    """Check entries: a NULL key or a repeated key is an error."""
    key = type_.children[0]

    def write(m: str) -> str:
        twice = f"len({m}) > 1 AND len(list_distinct({_keys(m)})) < len({m})"
        return failing(
            [
                (has_null(_keys(m), key), "NULL_MAP_KEY", "Cannot use null as map key."),
                (twice, "DUPLICATED_MAP_KEY", "Duplicate map key was found."),
            ],
            m,
        )

    return bound([cast(entries, type_)], write)


def _with_normal_keys(entries: str, type_: DataType) -> str:
    """Normalize zeros and NaN among the keys, unless Spark already has an array of the keys."""
    key = field_sql("e", 0)
    normal = normalized(key, type_.children[0])
    pair = struct_sql([normal, field_sql("e", 1)])
    return entries if normal == key else f"list_transform({entries}, lambda e: {pair})"


def _map(call: Call, sql: Sequence[str]) -> str:
    key = call.type.children[0]
    keys = (normalized(one, key) for one in sql[0::2])
    entries = (struct_sql(pair) for pair in zip(keys, sql[1::2], strict=True))
    return checked_map(f"[{', '.join(entries)}]", call.type)


def _entries(call: Call) -> tuple[Sequence[float], float]:
    count = len(call.arguments)
    return (1,) * count, VALUE_BYTES * count


def _map_value(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
    return bound(sql, lambda m, k: f"list_extract({_values(m)}, list_position({_keys(m)}, {k}))")


def _map_of_arrays(call: Call, sql: Sequence[str]) -> str:
    def write(keys: str, values: str) -> str:
        pair = struct_sql([f"list_extract({keys}, n)", f"list_extract({values}, n)"])
        entries = f"list_transform(generate_series(1, len({keys})), lambda n: {pair})"
        nulls = f"{keys} IS NULL OR {values} IS NULL"
        lengths = error(
            "_LEGACY_ERROR_TEMP_2128", "The key array and value array of MapData must have the same length."
        )
        return case(
            [(nulls, "NULL"), (f"len({keys}) <> len({values})", lengths)], checked_map(entries, call.type)
        )

    return bound(sql, write)


def _map_of_entries(call: Call, sql: Sequence[str]) -> str:
    entry = entry_type(call.type)
    return bound(
        sql,
        lambda a: case(
            [(has_null(a, entry), "NULL")], checked_map(_with_normal_keys(a, call.type), call.type)
        ),
    )


def _write_map_of_text(call: Call, sql: Sequence[str]) -> str:
    """Write `str_to_map`: constants separate pairs, and keys from values; a key without one has the value NULL."""
    text_, between, behind_key = sql
    found = f"instr(p, {behind_key})"
    key = case([(f"{found} > 0", f"substr(p, 1, {found} - 1)")], "p")
    value = case([(f"{found} > 0", f"substr(p, {found} + length({behind_key}))")])
    pairs = f"list_transform(string_split({text_}, {between}), lambda p: {struct_sql([key, value])})"
    return checked_map(pairs, call.type)


def _map_concat(call: Call, sql: Sequence[str]) -> str:
    nulls = " OR ".join(f"{one} IS NULL" for one in sql)
    entries = _with_normal_keys(f"list_concat({', '.join(sql)})", call.type)
    return case([(nulls, "NULL")], checked_map(entries, call.type))


FAMILY: Final = Family(
    "Arrays, structs and maps",
    (
        exact(
            "GetMapValue",
            "map_value",
            MAPS,
            COMPARABLE,
            sql=ScalarSql(2, _map_value, reason=fine, size=WITHIN),
            examples=("{map}['b']", "{map}[{string}]", "map({int}, 1, 200, 2)[{int}]"),
        ),
        guarded(
            "CreateMap",
            "map",
            guard=_KEYS,
            requires=_ONE_KEY,
            sql=ScalarSql((0, MANY), _map, fallible=always, size=by_call(_entries)),
            examples=(
                "map({int}, {any}, 300, null)",
                "map('k', {array})",
                "map(coalesce({double}, 0), 1)",
                "map(coalesce({date}, date'2000-01-01'), {string})",
            ),
        ),
        exact(
            "MapKeys",
            "map_keys",
            MAPS,
            sql=ScalarSql(1, template(_keys("{0}")), size=at_most(2)),
            examples=("map_keys({map})",),
        ),
        exact(
            "MapValues",
            "map_values",
            MAPS,
            sql=ScalarSql(1, template(_values("{0}")), size=at_most(2)),
            examples=("map_values({map})",),
        ),
        exact(
            "MapEntries",
            "map_entries",
            MAPS,
            sql=ScalarSql(1, template("{0}"), size=WITHIN),
            examples=("map_entries({map})",),
        ),
        guarded(
            "MapFromArrays",
            "map_from_arrays",
            ARRAYS,
            guard=_KEYS,
            requires=_ONE_KEY,
            sql=ScalarSql(2, _map_of_arrays, fallible=always, size=at_most(2)),
            examples=(
                "map_from_arrays(array('a', {string}), array(1, {int}))",
                "map_from_arrays(array(coalesce({double}, 7), 1e9), array(1, 2))",
            ),
        ),
        guarded(
            "MapFromEntries",
            "map_from_entries",
            ARRAYS,
            guard=_KEYS,
            requires=_ONE_KEY,
            sql=ScalarSql(1, _map_of_entries, fallible=always, size=WITHIN),
            examples=(
                "map_from_entries(array(struct({string}, {int}), struct('x', 2)))",
                "map_from_entries(map_entries({map}))",
                "map_from_entries(array(struct(coalesce({double}, 7), 1)))",
            ),
        ),
        guarded(
            "MapConcat",
            "map_concat",
            MAPS,
            guard=_KEYS,
            requires=_ONE_KEY,
            sql=ScalarSql((1, MANY), _map_concat, fallible=always, size=WITHIN),
            examples=(
                "map_concat({map_int}, map('zz', 1))",
                "map_concat({map_int}, {map_int})",
                "map_concat(map_from_arrays(array(coalesce({double}, 7)), array(1)), map(1e9, 2))",
            ),
        ),
        guarded(
            "StringToMap",
            "map_from_text",
            TEXT,
            guard=f"between constant texts, not patterns; {_KEYS}",
            build=_read_map_of_text,
            requires=_ONE_KEY,
            sql=ScalarSql(3, _write_map_of_text, reason=fine, fallible=always, size=at_most(PARTS_TIMES)),
            examples=(
                "str_to_map({string})",
                "str_to_map({moment}, '-', ' ')",
                "str_to_map({digits}, ',', '.')",
                "str_to_map({string}, 'X', 'b')",
            ),
        ),
        unsupported("MapSort", "how Spark groups maps with NULL values does not depend on the values alone"),
        unsupported("MapZipWith", "it is not supported yet"),
    ),
)
