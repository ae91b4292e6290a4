"""The largest parts of a plan that can be read as a whole, where all of it cannot.

A plan is read once, from the root; each node either becomes a relation or leaves a reason behind. A part is a node that
became one without a reason, below a node that did not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from wallaby.catalyst.node import Node, PlanPart
from wallaby.plan.leaf import SparkLeaf
from wallaby.reading.expressions import ExpressionReader
from wallaby.reading.leaves import LeafCutter, Path
from wallaby.relations.relation import Relation

#: Spark plans a limit with a sort below it as one node, and would not look at a part that begins with the sort.
_LIMITS: Final = frozenset({"GlobalLimit", "LocalLimit", "Offset"})


@dataclass(frozen=True, slots=True)
class NativePart:
    """A part of a plan that can be read: the way to it from the root, and what Spark has to run for it first."""

    path: Path
    relation: Relation
    leaves: tuple[SparkLeaf, ...]


class PartFinder(LeafCutter):
    """Notes on the way what became of every node."""

    def __init__(
        self, expressions: ExpressionReader, root: Node, describe: Callable[[Path], PlanPart] | None
    ) -> None:
        super().__init__(expressions, root, describe)
        self._root = root
        self._found: dict[int, NativePart] = {}

    def read(self, node: Node, read_here: Callable[[Node], Relation | None]) -> Relation | None:
        """What `LeafCutter` makes of a node, noted."""
        reasons, leaves = len(self._expressions.reasons), len(self.leaves)
        relation = super().read(node, read_here)
        path = self._paths.get(id(node))
        if relation is not None and path is not None and len(self._expressions.reasons) == reasons:
            self._found[id(node)] = NativePart(path, relation, tuple(self.leaves[leaves:]))
        return relation

    def largest(self) -> list[NativePart]:
        """The parts that are in no other."""
        return self._largest(self._root)

    def _largest(self, node: Node, *, limited: bool = False) -> list[NativePart]:
        """The largest parts of a node; `limited`: nothing but projections is between it and a limit."""
        found = self._found.get(id(node))
        if found is not None and _gives_columns(node) and not (limited and node.name == "Sort"):
            return [found]
        limited = node.name in _LIMITS or (limited and node.name == "Project")
        return [part for child in node.children for part in self._largest(child, limited=limited)]


def _gives_columns(node: Node) -> bool:
    """Rows without columns, which are only counted, cannot be handed over."""
    match node.name:
        case "Project":
            return bool(node.nodes("projectList"))
        case "Aggregate":
            return bool(node.nodes("aggregateExpressions"))
        case "GlobalLimit" | "LocalLimit" | "Offset" | "Filter" | "Sort":
            return _gives_columns(node.children[0])
        case _:
            return True
