"""Random queries whose answer is determined: selections, joins, groups, windows, set operations, subqueries, limits.

Functions that depend on the order of rows are used only where it is fixed: row numbers, offsets and limits come with an
order by every column. Values that are not exact (sums of odd floating-point numbers) are returned at the top and used
nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from wallaby_lab.differential.generated.expressions import ALSO, Expressions, ScopeColumn, TypedText
from wallaby_lab.differential.generated.schemas import RandomTable
from wallaby_lab.differential.generated.values import COLUMNS, EXPLODED, is_map
from wallaby_lab.differential.syntax import Piece, listed, text

_JOINS: Final = (
    "join",
    "join",
    "left join",
    "right join",
    "full join",
    "cross join",
    "left semi join",
    "left anti join",
)
_ONE_SIDED: Final = ("left semi join", "left anti join")
_SET_OPERATIONS: Final = ("union all", "union", "intersect", "intersect all", "except", "except all")
_ORDERS: Final = ("asc", "desc", "asc nulls last", "desc nulls first")
_ANY: Final = ("min", "max", "count", "count")
_NUMBERS: Final = ("sum", "avg", "sum", *_ANY)
_DEPTH: Final = 3


@dataclass(frozen=True, slots=True)
class RandomQuery:
    """A query, and the columns that it gives."""

    piece: Piece
    columns: tuple[ScopeColumn, ...]
    #: The columns of the ORDER BY at its top.
    order: tuple[str, ...] = ()
    #: The number of rows of its joins without conditions.
    reach: int = 1

    @property
    def exact(self) -> bool:
        """Are all columns exact?"""
        return all(column.exact for column in self.columns)


class Queries:
    """Makes queries over some tables."""

    def __init__(self, random: Random, tables: Sequence[RandomTable], expressions: Expressions) -> None:
        self._random = random
        self._tables = tables
        self._expressions = expressions
        self._names = 0
        self._reach = 1

    def query(self) -> RandomQuery:
        """A whole query."""
        query = self._ordered(self._query(_DEPTH), top=True)
        return replace(query, reach=self._reach)

    # --- queries -------------------------------------------------------------------------------------

    def _query(self, depth: int) -> RandomQuery:
        roll = self._random.random()
        if roll < 0.34 or depth <= 0:
            return self._selection(depth)
        if roll < 0.62:
            return self._aggregation(depth)
        if roll < 0.78:
            return self._window(depth)
        if roll < 0.9:
            return self._set_operation(depth)
        return self._common_table(depth)

    def _selection(self, depth: int, kinds: Sequence[str] | None = None) -> RandomQuery:
        source, scope = self._from(depth)
        made = (
            [self._expressions.of(kind, scope) for kind in kinds]
            if kinds is not None
            else [self._expressions.any(scope) for _ in range(self._random.randint(1, 4))]
        )
        comparable = all(one.exact and not is_map(one.kind) for one in made)
        distinct = comparable and self._random.random() < 0.12
        items, columns = self._items(made)
        head = "select distinct" if distinct else "select"
        parts = (items, source, self._where(scope, depth))
        return RandomQuery(Piece(f"{head} {{0}} from {{1}}{{2}}", parts, "query"), columns)

    def _aggregation(self, depth: int) -> RandomQuery:
        source, scope = self._from(depth)
        keys = [self._expressions.any(scope, 1) for _ in range(self._random.choice((0, 1, 1, 2, 2, 3)))]
        keys = [key for key in keys if key.exact]
        made = keys + [self._aggregate(scope) for _ in range(self._random.randint(1, 3))]
        items, columns = self._items(made)
        having = text("", optional=True)
        if keys and self._random.random() < 0.25:
            one = self._aggregate(scope, exact=True)
            known = one.kind in COLUMNS and not is_map(one.kind)
            constant = self._expressions.constant(one.kind).piece if known else text("null")
            having = Piece(
                f" having {{0}} {self._random.choice(('>', '<=', '<>'))} {{1}}",
                (one.piece, constant),
                optional=True,
            )
        parts = (
            items,
            source,
            self._where(scope, depth),
            self._grouping([key.piece for key in keys]),
            having,
        )
        return RandomQuery(Piece("select {0} from {1}{2}{3}{4}", parts, "query"), columns)

    def _grouping(self, keys: list[Piece]) -> Piece:
        if not keys:
            return text("", optional=True)
        roll = self._random.random()
        if len(keys) > 1 and roll < 0.1:
            return Piece(" group by rollup({0})", (listed(tuple(keys)),))
        if len(keys) > 1 and roll < 0.18:
            return Piece(" group by cube({0})", (listed(tuple(keys)),))
        if len(keys) > 1 and roll < 0.26:
            sets = (
                Piece("({0})", (listed(tuple(keys[:1])),)),
                Piece("({0})", (listed(tuple(keys)),)),
                text("()"),
            )
            return Piece(" group by grouping sets ({0})", (listed(sets),))
        return Piece(" group by {0}", (listed(tuple(keys)),))

    def _aggregate(self, scope: Sequence[ScopeColumn], *, exact: bool = False) -> TypedText:
        usable = [c for c in scope if c.exact and c.kind in COLUMNS and c.kind != "binary"]
        if not usable or self._random.random() < 0.15:
            return TypedText(text("count(*)", "bigint"), "bigint")
        column = self._random.choice(usable)
        argument = TypedText(text(column.sql, column.kind), column.kind, adds_up=column.adds_up)
        if self._random.random() < 0.4:
            argument = self._expressions.of(ALSO.get(column.kind, column.kind), scope, 1)
        # Whether a sum of numbers of 38 digits overflows depends on the order of rows.
        number = _is_number(argument.kind) and not argument.kind.startswith("decimal_38")
        name = self._random.choice(_NUMBERS if number else _ANY)
        if is_map(argument.kind):
            name = "count"
        if name == "sum" and argument.kind == "bigint":
            name = "try_sum"  # as above
        floating = argument.kind in ("float", "double") and name in ("sum", "avg")
        inexact = (floating and not argument.adds_up) or not argument.exact
        if exact and inexact:
            return TypedText(text("count(*)", "bigint"), "bigint")
        distinct = "distinct " if self._random.random() < 0.15 and not is_map(argument.kind) else ""
        kept = text("", optional=True)
        if self._random.random() < 0.12:
            kept = Piece(" filter (where {0})", (self._expressions.condition(scope, 1),), optional=True)
        kind = "bigint" if name == "count" else argument.kind if name in _ANY else "number"
        return TypedText(
            Piece(f"{name}({distinct}{{0}}){{1}}", (argument.piece, kept), kind), kind, exact=not inexact
        )

    def _window(self, depth: int) -> RandomQuery:
        source, scope = self._from(depth)
        shown = [TypedText(text(c.sql, c.kind), c.kind, c.exact, c.adds_up) for c in scope]
        windows = [self._windowed(scope, by_place=True)]
        if self._random.random() < 0.5:
            windows.append(self._windowed(scope, by_place=False))
        made = [*shown[:4], *windows]
        items, columns = self._items(made)
        return RandomQuery(
            Piece("select {0} from {1}{2}", (items, source, self._where(scope, depth)), "query"), columns
        )

    def _windowed(self, scope: Sequence[ScopeColumn], *, by_place: bool) -> TypedText:
        """A function over a window; if it depends on a row's position, the window is ordered by all columns.

        Rows that are equal in all columns may still be exchanged, in each window differently: with several such
        functions in one query, the combination of values is random.
        """
        usable = [column for column in scope if column.exact and not is_map(column.kind)]
        by = tuple(
            text(c.sql)
            for c in self._random.sample(usable, min(len(usable), self._random.choice((0, 1, 1, 2))))
        )
        partition = (
            Piece("partition by {0} ", (listed(by),), optional=True) if by else text("", optional=True)
        )
        roll = self._random.random()
        if roll < 0.25 or (roll < 0.6 and not by_place) or len(usable) < len(scope):
            function: TypedText = TypedText(
                text(self._random.choice(("rank()", "dense_rank()", "percent_rank()", "cume_dist()"))), "rank"
            )
            order = self._order_by(self._random.sample(usable, min(len(usable), 2)))
            return self._over(function, partition, order, "")
        if roll < 0.4:
            function = TypedText(
                text(self._random.choice(("row_number()", "ntile(3)", "row_number()"))), "int"
            )
            return self._over(function, partition, self._order_by(usable), "")
        column = self._random.choice(usable)
        if roll < 0.6:
            call = self._random.choice(
                (
                    "lag({})",
                    "lead({}, 2)",
                    "lag({}, 1)",
                    "first_value({})",
                    "last_value({})",
                    "nth_value({}, 2)",
                )
            )
            function = TypedText(text(call.format(column.sql)), column.kind)
            return self._over(function, partition, self._order_by(usable), "")
        function = self._aggregate(scope)
        if "distinct" in str(function.piece) or "filter" in str(function.piece):
            function = TypedText(text("count(*)", "bigint"), "bigint")
        if roll < 0.7:
            return self._over(function, partition, text(""), "")
        if roll < 0.85 and by_place:
            frame = self._random.choice(_ROW_FRAMES)
            # A sum that slides over floating-point numbers is another one here and there.
            return self._over(function, partition, self._order_by(usable), f" rows between {frame}")
        # Near the ends of a type it depends on Spark's loops whether the end of a frame is computed, and overflows.
        numbers = [c for c in usable if c.kind in ("small", "date")]
        if roll < 0.93 or not numbers:
            return self._over(function, partition, self._order_by(self._random.sample(usable, 1)), "")
        frame = self._random.choice(_RANGE_FRAMES)
        return self._over(
            function, partition, self._order_by([self._random.choice(numbers)]), f" range between {frame}"
        )

    def _over(self, function: TypedText, partition: Piece, order: Piece, frame: str) -> TypedText:
        piece = Piece(
            "{0} over ({1}{2}{3})",
            (function.piece, partition, order, text(frame, optional=True)),
            function.kind,
        )
        return TypedText(piece, function.kind, function.exact)

    def _order_by(self, columns: Sequence[ScopeColumn]) -> Piece:
        """The complete ORDER BY: with a shorter one, other rows would tie, and answers could rightly differ."""
        if not columns:
            return text("")
        items = (f"{column.sql} {self._random.choice(_ORDERS)}" for column in columns)
        return text(f"order by {', '.join(items)}")

    def _set_operation(self, depth: int) -> RandomQuery:
        count = self._random.randint(1, 3)
        shared = [field.kind for field in self._tables[0].fields if not is_map(field.kind)]
        kinds = [ALSO.get(kind, kind) for kind in self._random.choices(shared, k=count)]
        one, two = self._selection(depth - 1, kinds), self._selection(depth - 1, kinds)
        exact = one.exact and two.exact
        word = self._random.choice(_SET_OPERATIONS) if exact else "union all"
        columns = tuple(
            replace(c, exact=c.exact and o.exact, adds_up=False)
            for c, o in zip(one.columns, two.columns, strict=True)
        )
        return RandomQuery(Piece(f"({{0}}) {word} ({{1}})", (one.piece, two.piece), "query"), columns)

    def _common_table(self, depth: int) -> RandomQuery:
        before, self._reach = self._reach, 1
        inner = self._query(depth - 1)
        self._reach = before * self._reach**2  # it is joined with itself
        name = self._name()
        a, b = self._name(), self._name()
        scope = [replace(c, sql=f"{alias}.{c.sql}") for alias in (a, b) for c in inner.columns]
        condition = self._join_condition(scope[: len(inner.columns)], scope[len(inner.columns) :])
        kind = self._random.choice(("join", "left join", "full join"))
        source = Piece(f"{name} {a} {kind} {name} {b} on {{0}}", (condition,), "source")
        items, columns = self._items([self._expressions.any(scope, 1) for _ in range(2)])
        head = Piece(f"with {name} as ({{0}})", (inner.piece,))
        return RandomQuery(Piece("{0} select {1} from {2}", (head, items, source), "query"), columns)

    def _ordered(self, query: RandomQuery, *, top: bool) -> RandomQuery:
        """Add an order by all columns, and a limit or an offset or both."""
        if (
            not query.exact
            or any(c.kind == "binary" or is_map(c.kind) for c in query.columns)
            or self._random.random() < (0.7 if top else 0.9)
        ):
            return query
        inner = self._name()
        names = [column.sql for column in query.columns]
        items = tuple(text(f"{name} {self._random.choice(_ORDERS)}") for name in names)
        cuts = (
            "",
            f" limit {self._random.randint(0, 12)}",
            f" limit {self._random.randint(1, 9)} offset {self._random.randint(1, 5)}",
            f" offset {self._random.randint(1, 5)}",
        )
        parts = (
            query.piece,
            Piece(" order by {0}", (listed(items),)),
            text(self._random.choice(cuts), optional=True),
        )
        return RandomQuery(
            Piece(f"select * from ({{0}}) {inner}{{1}}{{2}}", parts, "query"), query.columns, tuple(names)
        )

    # --- their parts ---------------------------------------------------------------------------------

    def _items(self, made: Sequence[TypedText]) -> tuple[Piece, tuple[ScopeColumn, ...]]:
        """A list of columns with new names."""
        names = [self._name() for _ in made]
        items = tuple(Piece(f"{{0}} as {name}", (one.piece,)) for name, one in zip(names, made, strict=True))
        columns = tuple(
            ScopeColumn(name, one.kind, one.exact, one.adds_up) for name, one in zip(names, made, strict=True)
        )
        return listed(items), columns

    def _from(self, depth: int) -> tuple[Piece, list[ScopeColumn]]:
        """A source, sometimes with the elements of one of its columns beside it."""
        source, scope = self._source(depth)
        nested = [column for column in scope if column.exact and column.kind in EXPLODED]
        if not nested or self._random.random() < 0.6:
            return source, scope
        column = self._random.choice(nested)
        name, kinds = self._name(), list(EXPLODED[column.kind])
        call = self._random.choice(("explode", "posexplode"))
        kinds = [*(["int"] if call == "posexplode" else []), *kinds]
        columns = [ScopeColumn(self._name(), kind, adds_up=kind != "double") for kind in kinds]
        outer = self._random.choice(("", "outer "))
        names = ", ".join(one.sql for one in columns)
        piece = Piece(
            f"{{0}} lateral view {outer}{call}({column.sql}) {name} as {names}", (source,), "source"
        )
        return piece, [*scope, *columns]

    def _source(self, depth: int) -> tuple[Piece, list[ScopeColumn]]:
        roll = self._random.random()
        if depth <= 0 or roll < 0.35:
            return self._table()
        if roll < 0.6:
            query = self._ordered(self._query(depth - 1), top=False)
            name = self._name()
            return Piece(f"({{0}}) {name}", (query.piece,), "source"), list(query.columns)
        return self._join(depth)

    def _table(self) -> tuple[Piece, list[ScopeColumn]]:
        table = self._random.choice(self._tables)
        self._reach *= max(1, len(table.rows))
        alias = self._name()
        columns = [ScopeColumn(f"{alias}.{field.name}", field.kind) for field in table.fields]
        return text(f"{table.name} {alias}", "source"), columns

    def _join(self, depth: int) -> tuple[Piece, list[ScopeColumn]]:
        left, ours = self._source(depth - 2)
        right, theirs = self._source(depth - 2)
        kind = self._random.choice(_JOINS)
        scope = ours if kind in _ONE_SIDED else [*ours, *theirs]
        if kind == "cross join":
            return Piece("{0} cross join ({1})", (left, right), "source"), scope
        condition = self._join_condition(ours, theirs)
        return Piece(f"{{0}} {kind} ({{1}}) on {{2}}", (left, right, condition), "source"), scope

    def _join_condition(self, ours: Sequence[ScopeColumn], theirs: Sequence[ScopeColumn]) -> Piece:
        pairs = [(a, b) for a in ours for b in theirs if _may_be_equal(a, b)]
        parts: list[Piece] = []
        if pairs and self._random.random() < 0.85:
            for a, b in self._random.sample(pairs, min(len(pairs), self._random.choice((1, 1, 2)))):
                parts.append(
                    text(f"{a.sql} {self._random.choice(('=', '=', '=', '<=>'))} {b.sql}", "boolean")
                )
        if not parts or self._random.random() < 0.3:
            parts.append(self._expressions.condition([*ours, *theirs], 1))
        return listed(tuple(parts), " and ")

    def _where(self, scope: Sequence[ScopeColumn], depth: int) -> Piece:
        roll = self._random.random()
        if roll < 0.45:
            return text("", optional=True)
        conditions = [self._expressions.condition(scope)]
        if depth > 0 and roll > 0.8:
            conditions.append(self._subquery(scope))
        return Piece(" where {0}", (listed(tuple(conditions), " and "),), optional=True)

    def _subquery(self, scope: Sequence[ScopeColumn]) -> Piece:
        """EXISTS, IN or a comparison with a single value, correlated with the outer query or not."""
        source, inner = self._table()
        pairs = [(a, b) for a in scope for b in inner if _may_be_equal(a, b)]
        usable = [c for c in scope if c.exact and c.kind in COLUMNS and not is_map(c.kind)]
        where = text("", optional=True)
        if pairs and self._random.random() < 0.6:
            a, b = self._random.choice(pairs)
            where = Piece(" where {0}", (text(f"{a.sql} = {b.sql}", "boolean"),), optional=True)
        elif self._random.random() < 0.5:
            where = Piece(" where {0}", (self._expressions.condition(inner, 1),), optional=True)
        negated = self._random.choice(("", "not "))
        roll = self._random.random()
        if roll < 0.4 or not usable:
            return Piece(f"{negated}exists (select 1 from {{0}}{{1}})", (source, where), "boolean")
        column = self._random.choice(usable)
        kind = ALSO.get(column.kind, column.kind)
        if roll < 0.75:
            shown = self._expressions.of(kind, inner, 1).piece
            return Piece(
                f"{column.sql} {negated}in (select {{2}} from {{0}}{{1}})", (source, where, shown), "boolean"
            )
        shown = self._expressions.of(kind, inner, 1).piece
        return Piece(
            f"{column.sql} >= (select max({{2}}) from {{0}}{{1}})", (source, where, shown), "boolean"
        )

    def _name(self) -> str:
        self._names += 1
        return f"n{self._names}"


_ROW_FRAMES: Final = (
    "unbounded preceding and current row",
    "2 preceding and 1 following",
    "1 following and 3 following",
    "3 preceding and 1 preceding",
    "current row and unbounded following",
)
_RANGE_FRAMES: Final = (
    "2 preceding and 3 following",
    "unbounded preceding and 1 preceding",
    "current row and 5 following",
    "current row and unbounded following",
)


def _may_be_equal(one: ScopeColumn, other: ScopeColumn) -> bool:
    return one.exact and other.exact and one.kind == other.kind and not is_map(one.kind)


def _is_number(kind: str) -> bool:
    return kind.startswith("decimal") or kind in (
        "tinyint",
        "smallint",
        "int",
        "small",
        "bigint",
        "float",
        "double",
    )
