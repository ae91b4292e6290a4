"""Everyday functions, and which of them are native: data for a page that `make pages` writes.

The names are those of `SHOW FUNCTIONS` in Spark 4.3, operators by their signs. They are chosen by hand: of each group
of Spark's reference of functions all but what is rare in everyday work, such as sketches, XML, variants, geography,
encryption, the session's own properties, and random numbers. Which classes of Catalyst an example of each becomes is
kept in a file, since only Spark knows: a test holds the file to it; `python -m tools.daily_functions` writes it anew.
"""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from wallaby.catalyst.data_types import data_type
from wallaby.catalyst.jvm import plan_of
from wallaby.catalyst.node import Node
from wallaby.functions.casts.casts import CASTS
from wallaby.functions.entry import Exactness
from wallaby.functions.registry import REGISTRY
from wallaby.reading.windows import FUNCTIONS as WINDOW_FUNCTIONS

KEPT = Path(__file__).resolve().parent / "daily_functions.csv"
#: The table that examples are over.
KINDS = """
    select cast(id as tinyint) as b, cast(id as smallint) as s, cast(id as int) as i, id as l,
           cast(id as float) as f, cast(id as double) as d, cast(id as decimal(7,2)) as small,
           cast(id as decimal(20,4)) as big, cast(id as string) as t, id > 1 as p, cast('a' as binary) as bin,
           date '2020-02-29' as day, timestamp '2020-02-29 12:00:00' as at,
           timestamp_ntz '2020-02-29 12:00:00' as at_ntz, array(id) as list, named_struct('x', id) as pair
    from range(5)
"""
#: What stands around functions in plans, and is read with them.
_AROUND = frozenset(
    (
        *("Alias", "AttributeReference", "Literal", "SortOrder", "WindowExpression", "WindowSpecDefinition"),
        *("SpecifiedWindowFrame", "CurrentRow$", "UnboundedPreceding$", "UnboundedFollowing$"),
        *("LambdaFunction", "NamedLambdaVariable", "AggregateExpression", "Complete$"),
    )
)
_GENERATORS = frozenset(("Explode", "Inline", "JsonTuple", "PosExplode", "Stack"))


class Daily(NamedTuple):
    """A function of everyday work: its group, an example, and the classes of Catalyst that this becomes."""

    group: str
    name: str
    example: str
    classes: str

    @property
    def is_native(self) -> bool:
        """Is each of the classes native?"""
        return all(_native(name, self.group) for name in self.classes.split())


def kept() -> list[Daily]:
    """Read the file."""
    with KEPT.open(encoding="utf-8", newline="") as file:
        return [Daily(*row) for row in csv.reader(file)][1:]


def planned(spark: SparkSession) -> Iterator[Daily]:
    """Spark's plan of each example."""
    for daily in kept():
        root = plan_of(spark.sql(f"select {daily.example} from kinds")).root  # noqa: S608 - our own examples
        yield daily._replace(classes=" ".join(sorted(set(_classes(root)) - _AROUND)))


def _native(name: str, group: str) -> bool:
    if name.startswith("Cast:"):
        source, target = (data_type(part) for part in name.removeprefix("Cast:").split(">"))
        return source is not None and target is not None and (source.kind, target.kind) in CASTS
    entry = REGISTRY.get(name)
    known = entry is not None and entry.exactness is not Exactness.UNSUPPORTED
    return known or name in _GENERATORS or (group == "windows" and name in WINDOW_FUNCTIONS)


def _classes(node: Node) -> Iterator[str]:
    """The expressions of a plan below a node; Java methods by their names, casts with their types."""
    entry = REGISTRY.get(node.name)
    if entry is not None and entry.rewrite is not None:
        node = entry.rewrite(node)
    if node.name == "Cast":
        yield f"Cast:{node.children[0].type}>{node.type}".replace(" ", "")
    elif node.type and not node.class_name.endswith("$"):
        yield node.name
    inside = [
        part
        for value in (node.fields or {}).values()
        for part in (value if isinstance(value, list) else [value])
    ]
    for part in (*node.children, *inside):
        if isinstance(part, Node):
            yield from _classes(part)


def main() -> None:
    """Write the file from Spark's plans."""
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    with tempfile.TemporaryDirectory() as directory:
        spark.sql(KINDS).write.parquet(f"{directory}/kinds")
        spark.read.parquet(f"{directory}/kinds").createOrReplaceTempView("kinds")
        found = list(planned(spark))
    spark.stop()
    with KEPT.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Daily._fields)
        writer.writerows(found)


if __name__ == "__main__":
    main()
