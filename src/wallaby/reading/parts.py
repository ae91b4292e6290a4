"""Find the largest parts of a plan that can be read, if the whole plan cannot.

A plan is read once, from the root; each node either becomes a relation or leaves a reason. A part is a node that became
a relation without a reason, below a node that did not. Spark itself places rows in partitions where the user said so,
and computes what asks in which file a row was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from wallaby.catalyst.node import Node, PlanPart
from wallaby.plan.leaf import SparkLeaf
from wallaby.reading.expressions import ExpressionReader
from wallaby.reading.leaves import LeafCutter, Path
from wallaby.reading.placement import asks_for_files, is_counted, is_placed
from wallaby.relations.relation import Relation

#: Spark plans a limit above a sort as one node, so it would ignore a part that begins with the sort.
_LIMITS: Final = frozenset({"GlobalLimit", "LocalLimit", "Offset"})


@dataclass(frozen=True, slots=True)
class NativePart:
    """A part of a plan that can be read: its path from the root, and what Spark has to run for it first."""

    path: Path
    relation: Relation
    leaves: tuple[SparkLeaf, ...]


class PartFinder(LeafCutter):
    """Reads a plan and notes the outcome of every node."""

    def __init__(
        self, expressions: ExpressionReader, root: Node, describe: Callable[[Path], PlanPart] | None
    ) -> None:
        super().__init__(expressions, root, describe)
        self._root = root
        self._found: dict[int, NativePart] = {}

    def read(self, node: Node, read_here: Callable[[Node], Relation | None]) -> Relation | None:
        """Read a node as `LeafCutter` does, and note the outcome."""
        reasons, leaves = len(self._expressions.reasons), len(self.leaves)
        relation = super().read(node, read_here)
        path = self._paths.get(id(node))
        if relation is not None and path is not None and len(self._expressions.reasons) == reasons:
            self._found[id(node)] = NativePart(path, relation, tuple(self.leaves[leaves:]))
        return relation

    def largest(self, written: Path | None = None) -> list[NativePart]:
        """The parts that no other part contains. Spark's tasks may read their rows; those at `written` go to files.

        Files may be divided in another way than Spark's, unless the user said how many there are to be.
        """
        return self._largest(self._root, written)

    def _largest(self, node: Node, written: Path | None, *, limited: bool = False) -> list[NativePart]:
        """The largest parts of a node; `limited`: only projections are between it and a limit."""
        found = self._found.get(id(node))
        if found is not None and not (limited and node.name == "Sort"):
            is_sparks = is_counted(node) if found.path == written else is_placed(node)
            if not is_sparks:
                return [found]
        if asks_for_files(node):
            return []
        limited = node.name in _LIMITS or (limited and node.name == "Project")
        return [part for child in node.children for part in self._largest(child, written, limited=limited)]
