"""How many rows a join gives, by its kind, its keys, and what is known of both sides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod, sqrt

from wallaby.plan.estimates.selectivity import (
    ColumnEstimate,
    Columns,
    selectivity_between,
)
from wallaby.plan.estimates.size import Estimate, combinations
from wallaby.relations.expression import Column
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import (
    Join,
)

#: For a table without statistics: large enough never to be broadcast by mistake.
_ROWS_UNKNOWN = 1e9
#: Some rows are always assumed to have no partner.
_ANTI_LEAST = 0.05


def of_join(join: Join, left: Estimate, right: Estimate, row_bytes: int) -> Estimate:
    """The estimate of a join, from those of its sides."""
    columns = {**left.columns, **right.columns}
    pairs = [(left.known(a), right.known(b)) for a, b in zip(join.left_keys, join.right_keys, strict=True)]
    sides = (frozenset(left.columns), frozenset(right.columns))
    share = 1.0 if join.residual is None else selectivity_between(join.residual, columns, sides)
    domain = key_domain(pairs)
    matched = left.rows * right.rows / (domain * _met(join, left, right, pairs))
    # A row has at most one partner for a key that occurs once.
    to_one = any(b.unique for _, b in pairs), any(a.unique for a, _ in pairs)
    if to_one[0]:
        matched = min(matched, left.rows)
    if to_one[1]:
        matched = min(matched, right.rows)
    found = min(1.0, right.groups(join.right_keys) / domain) * share
    rows = _rows_of_kind(join.kind, matched * share, left.rows, right.rows, found)
    if join.kind is JoinKind.SEMI:
        keys = {key.id for key in join.left_keys if isinstance(key, Column)}
        met = {
            id_: replace(known, met=known.met * found) for id_, known in left.columns.items() if id_ in keys
        }
        return Estimate(rows, {**left.columns, **met}, row_bytes)
    if not join.kind.shows_right:
        return Estimate(rows, left.columns, row_bytes)
    known = _after_join(join, left.columns, right.columns, to_one)
    return Estimate(rows, _with_nulls(join.kind, known, sides, found), row_bytes)


def _met(
    join: Join,
    left: Estimate,
    right: Estimate,
    pairs: Sequence[tuple[ColumnEstimate, ColumnEstimate]],
) -> float:
    """The share of keys that can find a partner, where a semi join has kept only those of the other side."""
    share = 1.0
    for (a, b), left_key, right_key in zip(pairs, join.left_keys, join.right_keys, strict=True):
        domain = domain_of((a, b))
        of_left = [max(a.met, right.distinct(right_key) / domain)] if a.met < 1.0 else []
        of_right = [max(b.met, left.distinct(left_key) / domain)] if b.met < 1.0 else []
        share *= min(1.0, max((*of_left, *of_right), default=1.0))
    return share


def _after_join(join: Join, left: Columns, right: Columns, to_one: tuple[bool, bool]) -> Columns:
    """Estimate the columns of both sides after a join: keys are equal now; a side that met unique keys stays unique."""
    sides = [
        columns
        if once
        else {id_: replace(known, unique=False) if known.unique else known for id_, known in columns.items()}
        for columns, once in zip((left, right), to_one, strict=True)
    ]
    columns = {**sides[0], **sides[1]}
    if join.kind is not JoinKind.INNER:
        return columns
    for a, b in zip(join.left_keys, join.right_keys, strict=True):
        if isinstance(a, Column) and isinstance(b, Column) and a.id in columns and b.id in columns:
            mine, other = columns[a.id], columns[b.id]
            if mine.is_key != other.is_key:
                # The values of a foreign key are a subset of the key's.
                foreign, key = (b, mine) if mine.is_key else (a, other)
                columns[foreign.id] = replace(
                    columns[foreign.id], distinct=domain_of((mine, other)), is_key=key.is_key
                )
    return columns


def _with_nulls(
    kind: JoinKind, columns: Columns, sides: tuple[frozenset[int], frozenset[int]], found: float
) -> Columns:
    """After an outer join, the columns of a side are NULL in rows of the other side that have no partner there."""
    padded = (sides[0] if kind.keeps_right else frozenset()) | (sides[1] if kind.pads_right else frozenset())
    lacking = max(1 - found, _ANTI_LEAST)
    return {
        id_: replace(known, null_share=max(known.null_share, lacking)) if id_ in padded else known
        for id_, known in columns.items()
    }


def domain_of(columns: Iterable[ColumnEstimate]) -> float:
    """The number of values in the common domain of columns that are compared with each other.

    If one column is a key, its number of values is known, and the others refer to it. Otherwise only upper bounds are
    known, and the lowest is the best, because that of a foreign key is often too high (sparse keys). Values outside the
    range of another column find no partner and do not count.
    """
    known = tuple(columns)
    keys = [column.distinct for column in known if column.is_key and column.distinct is not None]
    bounds = [column.distinct for column in known if column.distinct is not None]
    domain = min(keys or bounds, default=_ROWS_UNKNOWN)
    ranges = [(c.low, c.high) for c in known if c.whole and c.low is not None and c.high is not None]
    if len(ranges) == len(known) and ranges:
        common = min(high for _, high in ranges) - max(low for low, _ in ranges) + 1
        domain = min(domain, max(1.0, common))
    return max(1.0, domain)


def key_domain(pairs: Sequence[tuple[ColumnEstimate, ColumnEstimate]]) -> float:
    """The number of distinct keys in the domain of two sides: 1 / the selectivity of their join."""
    return key_combinations(pairs, [domain_of(pair) for pair in pairs]) if pairs else 1.0


def key_combinations(
    pairs: Sequence[tuple[ColumnEstimate, ColumnEstimate]], domains: Sequence[float]
) -> float:
    """The number of combinations of the values of several keys, each with its own domain.

    A table has no more combinations than rows. Either table may be the one that the other refers to, as order lines
    refer to suppliers of parts, and returns to sales; so the estimate is the geometric mean of both bounds.
    """
    bounds = [
        combinations([(pair[side], domain) for pair, domain in zip(pairs, domains, strict=True)])
        for side in (0, 1)
    ]
    return max(1.0, min(prod(domains), sqrt(prod(bounds))))


def _rows_of_kind(kind: JoinKind, matched: float, left: float, right: float, found: float) -> float:
    """`matched` pairs; `found` is the share of left rows with a partner."""
    match kind:
        case JoinKind.INNER | JoinKind.CROSS:
            return matched
        case JoinKind.LEFT:
            return max(matched, left)
        case JoinKind.RIGHT:
            return max(matched, right)
        case JoinKind.FULL:
            return max(matched, left + right)
        case JoinKind.EXISTENCE | JoinKind.SINGLE:
            return left
        case JoinKind.SEMI:
            return left * found
        case JoinKind.ANTI:
            return left * max(1 - found, _ANTI_LEAST)
