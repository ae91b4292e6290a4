"""A few random rows for each table, so that plans can be run."""

from __future__ import annotations

import random
from datetime import date, timedelta
from decimal import Decimal

from tests.plan.builders import NEVER_NULL, Table
from tests.plan.interpreter import Row, Tables

from wallaby.relations.expression import Column
from wallaby.relations.types import Kind

_WORDS = ("1-URGENT", "ASIA", "BUILDING", "MAIL", "PROMO X", "R", "SHIP", None)


def rows_for(tables: dict[str, Table], seed: int, *, most: int = 60) -> Tables:
    """As many splits as the statistics say, some empty; keys from a small range, so that they meet."""
    choose = random.Random(seed)
    return {
        table.scan.files[0].path: [
            [
                _row(table.scan.columns, choose)
                for _ in range(choose.randint(0, most // len(table.statistics.splits)))
            ]
            for _ in table.statistics.splits
        ]
        for table in tables.values()
    }


def _row(columns: tuple[Column, ...], choose: random.Random) -> Row:
    return {column.id: _value(column, choose) for column in columns}


def _value(column: Column, choose: random.Random) -> object:
    if choose.random() < 0.05 and column.name not in NEVER_NULL:
        return None
    match column.type.kind:
        case Kind.LONG | Kind.INTEGER:
            return choose.randint(0, 6)
        case Kind.DECIMAL:
            return Decimal(choose.randint(0, 3000)).scaleb(-2)
        case Kind.DATE:
            return date(1993, 6, 1) + timedelta(days=choose.randint(0, 900))
        case _:
            return choose.choice(_WORDS)
