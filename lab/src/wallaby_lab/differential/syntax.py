"""A query as a tree of text, so that it can be reduced without understanding it.

A piece is a template with placeholders for its parts, or a list of parts with a separator. Reduction replaces pieces by
parts of the same kind and removes optional parts; Spark refuses invalid results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a query. `kind` is `query`, `source`, `clause`, `list`, or the type of an expression."""

    template: str
    parts: tuple[Piece, ...] = ()
    kind: str = "clause"
    #: Can it be left out, or, in a list, can it be missing?
    optional: bool = False

    def __str__(self) -> str:
        if self.kind == "list":
            return self.template.join(map(str, self.parts))
        return self.template.format(*self.parts)

    @property
    def size(self) -> int:
        """How many pieces it is made of."""
        return 1 + sum(part.size for part in self.parts)


def text(value: str, kind: str = "clause", *, optional: bool = False) -> Piece:
    """A piece without parts."""
    return Piece(value.replace("{", "{{").replace("}", "}}"), (), kind, optional)


def listed(parts: tuple[Piece, ...], between: str = ", ", *, optional: bool = False) -> Piece:
    """Parts with something between them; each can be missing as long as there is another."""
    return Piece(between, parts, "list", optional)


def smaller(piece: Piece) -> Iterator[Piece]:
    """Possible replacements of a piece, the much smaller ones first."""
    for descendant in sorted(_below(piece), key=lambda one: one.size):
        if descendant.kind == piece.kind and piece.kind not in ("clause", "list"):
            yield descendant
    if piece.kind == "list" and len(piece.parts) > 1:
        for place in range(len(piece.parts)):
            yield replace(piece, parts=piece.parts[:place] + piece.parts[place + 1 :])
    for place, part in enumerate(piece.parts):
        if part.optional and str(part):
            yield _with(piece, place, text("", part.kind, optional=True))
    for place, part in enumerate(piece.parts):
        for other in smaller(part):
            yield _with(piece, place, replace(other, optional=part.optional))


def _below(piece: Piece) -> Iterator[Piece]:
    for part in piece.parts:
        yield part
        yield from _below(part)


def _with(piece: Piece, place: int, part: Piece) -> Piece:
    return replace(piece, parts=(*piece.parts[:place], part, *piece.parts[place + 1 :]))
