"""The kinds of joins, and what each does with rows that have no partner."""

from __future__ import annotations

from enum import Enum


class JoinKind(Enum):
    """Which rows a join gives. `left` is the side that semi and anti joins filter."""

    INNER = "inner"
    LEFT = "left outer"
    RIGHT = "right outer"
    FULL = "full outer"
    SEMI = "left semi"
    ANTI = "left anti"
    CROSS = "cross"
    #: All rows of the left side, and whether each has a partner.
    EXISTENCE = "existence"
    #: All rows of the left side, each with its only partner; a second one is an error. A correlated subquery's value.
    SINGLE = "left single"

    @property
    def is_inner(self) -> bool:
        """The result has only pairs, so the sides may be exchanged."""
        return self in (JoinKind.INNER, JoinKind.CROSS)

    @property
    def is_filter(self) -> bool:
        """The result has rows of the left side, unchanged, each at most once; only keys of the right side matter."""
        return self in (JoinKind.SEMI, JoinKind.ANTI)

    @property
    def shows_right(self) -> bool:
        """The result has the columns of the right side too."""
        return not self.is_filter and self is not JoinKind.EXISTENCE

    @property
    def keeps_left(self) -> bool:
        """The result has the rows of the left side without a partner."""
        return self in (
            JoinKind.LEFT,
            JoinKind.FULL,
            JoinKind.ANTI,
            JoinKind.EXISTENCE,
            JoinKind.SINGLE,
        )

    @property
    def keeps_right(self) -> bool:
        """The result has the rows of the right side without a partner, with NULLs for the columns of the left side."""
        return self in (JoinKind.RIGHT, JoinKind.FULL)

    @property
    def pads_right(self) -> bool:
        """The result has left rows without a partner, with NULLs for the columns of the right side."""
        return self.keeps_left and self.shows_right

    @property
    def filters_left(self) -> bool:
        """A filter of the result by columns of the left side may filter the left side instead.

        Not if the result has rows without any of the left side, nor if a row of it can end the query.
        """
        return not self.keeps_right and self is not JoinKind.SINGLE

    @property
    def keeps_only_matched(self) -> bool:
        """Rows without a partner are dropped on both sides, so the keys of one side may filter the other."""
        return not self.keeps_left and not self.keeps_right
