"""The largest parts of a plan that run here, where all of it cannot: read once, together with the plan around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from wallaby.catalyst.jvm import zone_rules
from wallaby.catalyst.node import Node, PlanPart, PlanText
from wallaby.reading.expressions import ExpressionReader
from wallaby.reading.leaves import Path
from wallaby.reading.operators import RelationReader
from wallaby.reading.parts import NativePart, PartFinder
from wallaby.reading.prune import prune
from wallaby.reading.reader import ALL_READABLE, expression_reader, reads_something, with_columns
from wallaby.relations.expression import Column, Literal, Named
from wallaby.relations.reason import Reason
from wallaby.relations.relation import DataFile, Project, Relation
from wallaby.relations.storage import Storage
from wallaby.relations.types import BOOLEAN


@dataclass(frozen=True, slots=True)
class NativeParts:
    """The parts of one plan, from left to right; Spark runs what is above them."""

    parts: tuple[NativePart, ...]
    #: The remote storages of their files, by the names that the files use for them.
    storages: Mapping[str, Storage] = field(default_factory=dict)
    _reader: ExpressionReader | None = None
    _largest_id: int = 0

    def whole(self, part: NativePart, output: tuple[Node, ...]) -> Relation | Reason:
        """A part as a query of its own, which gives the columns that Spark expects of it, in their order.

        Rows without columns, which are only counted, get a column that nobody reads: rows have to be something.
        """
        assert self._reader is not None
        if not output:
            return self._rows_only(part.relation)
        columns: list[Column] = []
        for attribute in output:
            column = self._reader.column(attribute)
            if column is None:
                return Reason(str(attribute), f"its type {attribute.type} cannot be read")
            columns.append(column)
        return with_columns(part.relation, tuple(columns), self._largest_id)

    def _rows_only(self, relation: Relation) -> Relation:
        assert self._reader is not None
        row = Column(self._reader.fresh_id(), "row", BOOLEAN, nullable=False)
        below = relation.child if isinstance(relation, Project) and not relation.outputs else relation
        return prune(Project(below, (Named(row, Literal(True, BOOLEAN)),)), frozenset({row.id}))


def native_parts(
    text: PlanText,
    describe: Callable[[Path], PlanPart],
    unreadable: Mapping[DataFile, str] = ALL_READABLE,
    zone: Callable[[str], str | None] = zone_rules,
    written: Path | None = None,
) -> NativeParts:
    """The largest parts of a plan that can be read. Tables with a file in `unreadable` cannot.

    The rows of the part at `written` may be written here. Nothing is said about whether that is worth it, nor about the
    files.
    """
    if text.streaming:
        return NativeParts(())
    reader = expression_reader(text, zone)
    finder = PartFinder(reader, text.root, describe)
    relations = RelationReader(reader, text.settings, finder, unreadable)
    relations.read(text.root)
    found = tuple(part for part in finder.largest(written) if reads_something(part.relation))
    return NativeParts(found, relations.storages, reader, text.largest_id)
