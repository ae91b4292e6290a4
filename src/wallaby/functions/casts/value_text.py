"""Numbers, dates and booleans as text, where DuckDB writes them differently from Java."""

from __future__ import annotations

from typing import Final

from wallaby.relations.types import INTEGER, DataType, Kind
from wallaby.sql.words import case, cast

EPOCH: Final = "DATE '1970-01-01'"
#: Java writes smaller decimals with an exponent, unless the mode is ANSI.
PLAIN_SCALE_MAX: Final = 6


def value_text(value: str, type_: DataType, java: str) -> str:
    """The text of a flat value, as the given version of Java writes it."""
    match type_.kind:
        case Kind.FLOAT:
            return f"wallaby_float_text(CAST({value} AS DOUBLE), {java})"
        case Kind.DOUBLE:
            return f"wallaby_double_text({value}, {java})"
        case Kind.DATE:
            days = cast(f"date_diff('day', {EPOCH}, {value})", INTEGER)
            plain = f"{value} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
            return case([(plain, f"CAST({value} AS VARCHAR)")], f"wallaby_date_text({days})")
        case Kind.STRING:
            return value
        case Kind.BOOLEAN | Kind.BYTE | Kind.SHORT | Kind.INTEGER | Kind.LONG:
            return f"CAST({value} AS VARCHAR)"
        case _:
            written = f"CAST({cast(value, type_)} AS VARCHAR)"
            # DuckDB omits the zero of a type without digits before the point.
            alone = type_.precision == type_.scale
            return f"regexp_replace({written}, '^(-?)[.]', '\\10.')" if alone else written
