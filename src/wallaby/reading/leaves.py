"""Cut Spark leaves: parts at the bottom of a plan that Wallaby cannot run, and that Spark runs and hands over as rows.

A leaf is a source and the row-by-row operators right above it. Cutting there costs one hand-over of rows. If something
above a join, an aggregation or a sort cannot run here, a leaf gains nothing, and Spark runs the whole query. A leaf is
as small as possible, so that most of the query runs here. But filters, projections and limits right above it belong to
the leaf, because Spark can push them into the source and then has fewer rows to hand over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from wallaby.catalyst.data_types import data_type
from wallaby.catalyst.node import Node, PlanPart
from wallaby.plan.leaf import SparkLeaf, leaf_number
from wallaby.reading.expressions import ExpressionReader
from wallaby.relations.expression import Column
from wallaby.relations.reason import Reason
from wallaby.relations.relation import Relation, Scan, children_of
from wallaby.relations.types import DataType, Kind

Path = tuple[int, ...]
#: Operators that Spark runs in one pass over their input, without moving rows between partitions.
NARROW: Final = frozenset(
    {
        "ArrowEvalPython",
        "BatchEvalPython",
        "DeserializeToObject",
        "Filter",
        "Generate",
        "GlobalLimit",
        "LocalLimit",
        "MapElements",
        "MapInArrow",
        "MapInPandas",
        "MapPartitions",
        "Offset",
        "Project",
        "PythonMapInArrow",
        "RebalancePartitions",
        "Repartition",
        "RepartitionByExpression",
        "Sample",
        "SerializeFromObject",
        "TypedFilter",
        "Union",
    }
)
_ABSORBED: Final = frozenset({"Filter", "GlobalLimit", "LocalLimit", "Project"})
#: Sources for which Spark's estimate is meaningless, or which are too small to be worth a leaf.
_UNSIZED: Final = frozenset(
    {"CommandResult", "EmptyRelation", "LocalRelation", "LogicalRDD", "OneRowRelation", "Range"}
)
#: Spark's estimate for a source of unknown size is the largest of all longs.
_KNOWN_BYTES_MAX: Final = 1 << 62


class LeafCutter:
    """Cuts the leaves of one plan while the plan is read; without `describe`, it cuts none."""

    def __init__(
        self, expressions: ExpressionReader, root: Node, describe: Callable[[Path], PlanPart] | None
    ) -> None:
        self._expressions = expressions
        self._describe = describe
        self._paths = _paths(root, ()) if describe is not None else {}
        #: The leaves in the tree that is being read; a leaf's number is its position here.
        self.leaves: list[SparkLeaf] = []

    def read(self, node: Node, read_here: Callable[[Node], Relation | None]) -> Relation | None:
        """Read a node with `read_here`; if that fails, make the node a leaf if it can be one."""
        reasons_before, leaves_before = len(self._expressions.reasons), len(self.leaves)
        relation = read_here(node)
        wanted = relation is None or (node.name in _ABSORBED and _is_over_leaf(relation))
        if not wanted or id(node) not in self._paths or not _is_narrow(node):
            return relation
        inner = [reason for leaf in self.leaves[leaves_before:] for reason in leaf.reasons]
        scan = self._cut(node, (*inner, *self._expressions.reasons[reasons_before:]), leaves_before)
        if scan is None:
            return relation
        del self._expressions.reasons[reasons_before:]
        return scan

    def _cut(self, node: Node, reasons: tuple[Reason, ...], leaves_before: int) -> Scan | None:
        assert self._describe is not None
        part = self._describe(self._paths[id(node)])
        ids = tuple(attribute.id for attribute in part.output if attribute.id is not None)
        if not ids or len(set(ids)) < len(part.output):
            return None  # rows without columns, and repeated columns, cannot be handed over
        sizes = [size for name, size in part.sources if name not in _UNSIZED and size < _KNOWN_BYTES_MAX]
        leaf = SparkLeaf(
            number=leaves_before,
            path=self._paths[id(node)],
            outputs=ids,
            reasons=tuple(dict.fromkeys(reasons)),
            operators=_names(node),
            size_bytes=sum(sizes) if sizes else None,
        )
        self.leaves[leaves_before:] = [leaf]
        return leaf.scan(_readable(part.output))


def _is_over_leaf(relation: Relation) -> bool:
    below = children_of(relation)[0] if children_of(relation) else relation
    return isinstance(below, Scan) and leaf_number(below) is not None


def _is_narrow(node: Node) -> bool:
    return not node.children or (node.name in NARROW and all(map(_is_narrow, node.children)))


def _readable(output: tuple[Node, ...]) -> tuple[Column, ...]:
    """The columns whose types can be handed over; a column of another type is refused only if the query uses it."""
    columns: list[Column] = []
    for attribute in output:
        kind = data_type(attribute.type)
        if kind is not None and _can_be_handed_over(kind) and attribute.id is not None:
            columns.append(Column(attribute.id, attribute.label, kind, attribute.nullable))
    return tuple(columns)


def _can_be_handed_over(type_: DataType) -> bool:
    """Can a type be written to a file? There, fields of a struct are found by name without regard to case."""
    lower = [name.lower() for name in type_.names]
    unique = len(set(lower)) == len(lower)
    return unique and all(map(_can_be_handed_over, type_.children)) and type_.kind is not Kind.NULL


def _names(node: Node) -> tuple[str, ...]:
    """The operators of a sub-plan, outermost first."""
    return (node.name.rpartition(".")[2], *(name for child in node.children for name in _names(child)))


def _paths(node: Node, path: Path) -> dict[int, Path]:
    """The way to each operator of a plan, by the identity of its node."""
    found = {id(node): path}
    for number, child in enumerate(node.children):
        found.update(_paths(child, (*path, number)))
    return found
