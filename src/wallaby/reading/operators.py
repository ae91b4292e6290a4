"""Read operators: Catalyst's plan nodes become relations, with a reason for every node that cannot be read.

A child that cannot be read does not end the reading: the user sees all reasons at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from wallaby.catalyst.node import Node, UnreadablePlanError
from wallaby.reading.expressions import ExpressionReader
from wallaby.reading.generators import read_generate
from wallaby.reading.grouping import read_aggregate, read_named, unique
from wallaby.reading.joins import read_join
from wallaby.reading.lakes import read_iceberg
from wallaby.reading.leaves import LeafCutter
from wallaby.reading.rows import read_local, read_one_row, read_range
from wallaby.reading.scans import read_scan
from wallaby.reading.subqueries import Subqueries
from wallaby.reading.windows import WindowCalls
from wallaby.relations.expression import Column, Expression, Literal, Named, SortKey, columns_in
from wallaby.relations.reason import COMMAND, LOCAL_ROWS
from wallaby.relations.relation import (
    DataFile,
    Expand,
    Filter,
    Limit,
    Project,
    Relation,
    Scan,
    Sort,
    Union,
    Window,
)
from wallaby.relations.storage import Storage
from wallaby.relations.tree import arrange, conjunction, kept
from wallaby.relations.types import BOOLEAN

_NOT_YET: Final = "it is not supported yet"
_PYTHON: Final = "Python functions are not supported yet"

#: Why known operators stay on Spark. All others are refused by name.
REFUSED: Final = {
    "ArrowEvalPython": (_PYTHON, "use built-in functions"),
    "BatchEvalPython": (_PYTHON, "use built-in functions"),
    "CommandResult": (COMMAND, ""),
    "EmptyRelation": (LOCAL_ROWS, ""),
    "InMemoryRelation": ("cached tables are in Spark's memory", "unpersist the table"),
    "LogicalRDD": (
        "rows that come from Python or an RDD are not supported yet",
        "write them to Parquet first",
    ),
    "Sample": ("the sample depends on Spark's partitions", ""),
    "UnionLoop": (
        "a recursive WITH repeats its query until no rows are added, and Wallaby runs each stage of a query once",
        "write the rows of the recursive part to a table first",
    ),
    "UnionLoopRef": ("it represents the rows that a recursive WITH added last", ""),
}
#: Filters that only save work: the join from which Catalyst derived them is still in the plan.
_REDUNDANT: Final = frozenset({"BloomFilterMightContain", "DynamicPruningSubquery"})
_DIRECTIONS: Final = {"Ascending": True, "Descending": False}
_NULLS_FIRST: Final = {"NullsFirst": True, "NullsLast": False}
#: Spark's sort prefix holds this many digits of a decimal. It shortens the value itself, which shows for constants.
_SORTED_DIGITS_MAX: Final = 18


class RelationReader:
    """Reads the operators of one plan."""

    def __init__(
        self,
        expressions: ExpressionReader,
        settings: Mapping[str, str],
        leaves: LeafCutter,
        unreadable: Mapping[DataFile, str],
    ) -> None:
        self._expressions = expressions
        self._unreadable = unreadable
        self._settings = settings
        self._subqueries = Subqueries(self.read, expressions.fresh_id, expressions.refuse)
        expressions.subquery = self._subqueries.read
        self._leaves = leaves
        #: The remote storages of the scans' files, by the names that the files use for them.
        self.storages: dict[str, Storage] = {}

    def read(self, node: Node) -> Relation | None:
        """Read the relation of a node, which may be or contain a Spark leaf; or note reasons and return None."""
        return self._leaves.read(node, self._read_here)

    def _read_here(self, node: Node) -> Relation | None:
        reader = READERS.get(node.name)
        if reader is not None:
            relation = reader(self, node)
            self._subqueries.finish(node.name)
            return relation
        why, remedy = REFUSED.get(node.name, (_NOT_YET, ""))
        self._expressions.refuse(node.name, why, remedy)
        for child in node.children:
            self.read(child)
        return None

    def _scan(self, node: Node) -> Relation | None:
        return self._readable(read_scan(node, self._expressions, self._settings, self.storages))

    def _scan_of_source(self, node: Node) -> Relation | None:
        if isinstance(node.field("scan"), dict) and "against" in node.field("scan"):  # type: ignore[operator]
            return self._readable(read_iceberg(node, self._expressions, self._settings))
        self._expressions.refuse(node.name, "this source is not supported yet", "read Parquet files")
        return None

    def _readable(self, scan: Scan | None) -> Scan | None:
        """The scan, unless one of its files cannot be read."""
        why = None if scan is None else next(filter(None, map(self._unreadable.get, scan.files)), None)
        if scan is None or why is None:
            return scan
        self._expressions.refuse(scan.label or "scan", why)
        return None

    def _rows(self, node: Node) -> Relation | None:
        return read_local(node, self._expressions)

    def _one_row(self, node: Node) -> Relation | None:
        return read_one_row(node, self._expressions)

    def _range(self, node: Node) -> Relation | None:
        return read_range(node, self._expressions)

    def _same(self, node: Node) -> Relation | None:
        """Read the child alone: where Spark would place its rows does not matter here."""
        return self.read(node.children[0])

    def _project(self, node: Node) -> Relation | None:
        child = self.read(node.children[0])
        outputs = read_named(node.nodes("projectList"), self._expressions)
        if child is None or outputs is None:
            return None
        child = self._subqueries.beside(child, *(named.expression for named in outputs))
        return Project(child, unique(outputs, self._expressions) if outputs else (self._row(),))

    def _row(self) -> Named:
        """A placeholder column for rows that are only counted."""
        column = Column(self._expressions.fresh_id(), "row", BOOLEAN, nullable=False)
        return Named(column, Literal(True, BOOLEAN))

    def _filter(self, node: Node) -> Relation | None:
        child = self.read(node.children[0])
        parts = [part for part in _conjuncts(node.node("condition")) if part.name not in _REDUNDANT]
        conditions = self._expressions.read_all(tuple(parts))
        if child is None or conditions is None:
            return None
        condition = conjunction(conditions)
        if condition is None:
            return child
        return arrange(Filter(self._subqueries.beside(child, condition), condition), child.columns)

    def _join(self, node: Node) -> Relation | None:
        left, right = (self.read(child) for child in node.children)
        return read_join(node, left, right, self._expressions, self._subqueries)

    def _aggregate(self, node: Node) -> Relation | None:
        return read_aggregate(node, self.read(node.children[0]), self._expressions, self._subqueries)

    def _sort(self, node: Node) -> Relation | None:
        child = self.read(node.children[0])
        keys = [self._sort_key(order) for order in node.nodes("order")]
        found = tuple(key for key in keys if key is not None)
        if not node.flag("global"):
            self._expressions.refuse(
                "Sort", "it sorts within Spark's partitions, which Wallaby does not have", "use orderBy"
            )
            return None
        if child is None or len(found) < len(keys):
            return None
        beside = self._subqueries.beside(child, *(key.expression for key in found))
        return arrange(Sort(beside, found), child.columns)

    def _sort_key(self, node: Node) -> SortKey | None:
        expression = self._expressions.read(node.children[0])
        ascending = _DIRECTIONS.get(node.word("direction"))
        nulls_first = _NULLS_FIRST.get(node.word("nullOrdering"))
        if ascending is None or nulls_first is None:
            raise UnreadablePlanError("A sort order has an unknown direction.")
        if isinstance(expression, Literal) and expression.type.precision > _SORTED_DIGITS_MAX:
            why = f"Spark shortens a constant of more than {_SORTED_DIGITS_MAX} digits by which it sorts"
            self._expressions.refuse("SortOrder", why, "leave it out of the order")
            return None
        return None if expression is None else SortKey(expression, ascending, nulls_first)

    def _limit(self, node: Node) -> Relation | None:
        """Read a limit, for which Catalyst has two nodes, and a third between them for an offset."""
        count = self._count(node, "limitExpr")
        below = node.children[0]
        offset: int | None = 0
        if below.name == "Offset" and node.name == "GlobalLimit":
            offset = self._count(below, "offsetExpr")
            below = below.children[0]
        if below.name == "LocalLimit" and self._count(below, "limitExpr") == (count or 0) + (offset or 0):
            # The limit of each partition is implied by that of the whole.
            below = below.children[0]
        child = self.read(below)
        return None if child is None or count is None or offset is None else Limit(child, count, offset)

    def _offset(self, node: Node) -> Relation | None:
        offset = self._count(node, "offsetExpr")
        child = self.read(node.children[0])
        return None if child is None or offset is None else Limit(child, None, offset)

    def _expand(self, node: Node) -> Relation | None:
        child = self.read(node.children[0])
        columns = [self._expressions.column(attribute) for attribute in node.nodes("output")]
        lists = node.field("projections")
        if not isinstance(lists, list):
            raise UnreadablePlanError("The projections of an Expand are not a list.")
        read = [self._expressions.read_all(tuple(projection)) for projection in lists]
        found = tuple(column for column in columns if column is not None)
        projections = tuple(projection for projection in read if projection is not None)
        if child is None or len(found) < len(columns) or len(projections) < len(read):
            return None
        if not found:
            row = self._row()
            return Expand(child, ((row.expression,),) * len(projections), (row.column,))
        return Expand(child, projections, found)

    def _generate(self, node: Node) -> Relation | None:
        return read_generate(node, self.read(node.children[0]), self._expressions)

    def _window(self, node: Node) -> Relation | None:
        child = self.read(node.children[0])
        partition = self._expressions.read_all(node.nodes("partitionSpec"))
        keys = [self._sort_key(order) for order in node.nodes("orderSpec")]
        order = tuple(key for key in keys if key is not None)
        calls = WindowCalls(self._expressions)
        outputs = calls.read(node.nodes("windowExpressions"))
        if child is None or partition is None or outputs is None or len(order) < len(keys):
            return None
        rows = child
        if not order and any(call.function.function == "row_number" for call in calls.found):
            # Catalyst makes it of a LIMIT in a correlated subquery, and relies on the order of a sort below.
            found = _in_the_order_below(child)
            if found is None:
                self._expressions.refuse(
                    "Window", "the row numbers depend on an order that the window does not define"
                )
                return None
            rows, order = found
        window = Window(rows, partition, order, tuple(calls.found))
        if rows is child and all(named.expression == named.column for named in outputs):
            return window
        return Project(window, (*kept(child.columns), *outputs))

    def _count(self, node: Node, field: str) -> int | None:
        expression: Expression | None = self._expressions.read(node.node(field))
        if isinstance(expression, Literal) and isinstance(expression.value, int):
            return expression.value
        self._expressions.refuse(node.name, "the number of rows is not a constant")
        return None

    def _union(self, node: Node) -> Relation | None:
        children = [self.read(child) for child in node.children]
        found = tuple(child for child in children if child is not None)
        columns = [self._expressions.column(attribute) for attribute in node.output]
        output = tuple(column for column in columns if column is not None)
        if len(found) < len(children) or len(output) < len(columns):
            return None
        if not output:  # none of the children's columns is used
            found = tuple(Project(child, (self._row(),)) for child in found)
        return Union(found, output or found[0].columns)


def _in_the_order_below(relation: Relation) -> tuple[Relation, tuple[SortKey, ...]] | None:
    """The rows with all columns that an ORDER BY right below uses, and its keys; None without such an ORDER BY."""
    match relation:
        case Sort():
            return relation.child, relation.keys
        case Project(child=Sort(child=rows, keys=keys)):
            there = frozenset(column.id for column in relation.columns)
            wanted = frozenset[int]().union(*(columns_in(key.expression) for key in keys)) - there
            more = [column for column in rows.columns if column.id in wanted]
            return Project(rows, (*relation.outputs, *kept(more))), keys
        case Project() | Filter():
            further = _in_the_order_below(relation.child)
            return (relation, ()) if further is not None and not further[1] else None
        case _:
            return relation, ()


#: The reader of each operator that runs here, by the name of Catalyst's class.
READERS: Final[Mapping[str, Callable[[RelationReader, Node], Relation | None]]] = {
    "Aggregate": RelationReader._aggregate,
    "DataSourceV2ScanRelation": RelationReader._scan_of_source,
    "Expand": RelationReader._expand,
    "Filter": RelationReader._filter,
    "Generate": RelationReader._generate,
    "GlobalLimit": RelationReader._limit,
    "Join": RelationReader._join,
    "LocalLimit": RelationReader._limit,
    "LocalRelation": RelationReader._rows,
    "LogicalRelation": RelationReader._scan,
    "Offset": RelationReader._offset,
    "OneRowRelation": RelationReader._one_row,
    "Project": RelationReader._project,
    "Range": RelationReader._range,
    "RebalancePartitions": RelationReader._same,
    "Repartition": RelationReader._same,
    "RepartitionByExpression": RelationReader._same,
    "Sort": RelationReader._sort,
    "Union": RelationReader._union,
    "Window": RelationReader._window,
    # It drops rows whose rank is too high, which a filter above drops anyway.
    "WindowGroupLimit": RelationReader._same,
}


def _conjuncts(node: Node) -> list[Node]:
    if node.name == "And":
        return [part for child in node.children for part in _conjuncts(child)]
    return [node]
