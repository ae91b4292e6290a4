"""What a plan says about where rows are: in which partition, and from which file.

A query that goes to the driver as a whole need not heed this. But if Spark's tasks read the rows of a part, whoever is
above it sees partitions: a Python function that takes a whole one, a writer that makes a file of each, a program that
counts them. And only a task that reads a file can say which one it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from wallaby.catalyst.node import Node

#: Operators that leave each row in its partition.
_ROW_BY_ROW: Final = frozenset({"Expand", "Filter", "Generate", "Project"})
#: What `repartition`, `repartitionByRange`, `repartitionById`, `coalesce` and DISTRIBUTE BY become; RebalancePartitions
#: is only a hint.
_PLACED: Final = frozenset({"Repartition", "RepartitionByExpression"})
_OF_FILES: Final = frozenset({"InputFileBlockLength", "InputFileBlockStart", "InputFileName"})


def is_placed(node: Node) -> bool:
    """Did the user say into which partitions the rows of an operator go?"""
    return _placing(node) is not None


def is_counted(node: Node) -> bool:
    """Did the user say into how many partitions the rows of an operator go?"""
    found = _placing(node)
    return found is not None and (found.name == "Repartition" or found.field("optNumPartitions") is not None)


def asks_for_files(node: Node) -> bool:
    """Does an operator itself ask in which files its rows were?"""
    return any(each.name in _OF_FILES for each in _expressions(node))


def _placing(node: Node) -> Node | None:
    while node.name in _ROW_BY_ROW:
        node = node.children[0]
    return node if node.name in _PLACED else None


def _expressions(node: Node) -> Iterator[Node]:
    """The expressions in the fields of an operator, and those within them."""
    for field in (node.fields or {}).values():
        for item in field if isinstance(field, list) else (field,):
            if isinstance(item, Node):
                yield from _within(item)


def _within(expression: Node) -> Iterator[Node]:
    yield expression
    for child in expression.children:
        yield from _within(child)
