"""Spark's answers to the queries of a workload, computed once and kept beside the data.

Spark takes longer than the engine, and several budgets need the same answer. A kept answer belongs to a query's text
and a Spark version; for another text or version it is computed again.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark import __version__ as spark_version
from pyspark.sql import SparkSession

from wallaby_lab.compare import DifferentError, require_same

_LIMIT: Final = re.compile(r"\s+limit\s+\d+\s*$", re.IGNORECASE)
#: Nodes above a sort in an analysed plan that preserve its order.
_ABOVE_SORT: Final = frozenset({"GlobalLimit", "LocalLimit", "Project", "SubqueryAlias", "WithCTE"})


@dataclass(frozen=True, slots=True)
class Answer:
    """Spark's answer, its time, and the columns by which it is sorted."""

    table: pa.Table
    seconds: float
    order: tuple[str, ...]


class SparkAnswers:
    """Answers of one session, kept as Arrow files in a directory."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self._spark = spark
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def of(self, name: str, text: str) -> Answer:
        """The kept answer, or Spark's own, which is then kept."""
        path = self._directory / f"{name}.arrow"
        key = hashlib.blake2b(f"{spark_version}\0{text}".encode(), digest_size=8).hexdigest()
        if path.exists():
            kept = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
            about = json.loads((kept.schema.metadata or {}).get(b"answer", b"{}"))
            if about.get("key") == key:
                return Answer(kept.replace_schema_metadata(None), about["seconds"], tuple(about["order"]))
        df = self._spark.sql(text)
        order = _order_of(df._jdf.queryExecution().analyzed())
        began = time.monotonic()
        table = df.toArrow()
        seconds = round(time.monotonic() - began, 3)
        about = {"key": key, "seconds": seconds, "order": order}
        labelled = table.replace_schema_metadata({"answer": json.dumps(about)})
        unfinished = path.with_suffix(".unfinished")
        with pa.OSFile(str(unfinished), "wb") as file, pa.ipc.new_file(file, labelled.schema) as writer:
            writer.write_table(labelled)
        unfinished.replace(path)
        return Answer(table, seconds, order)

    def difference(self, actual: pa.Table, answer: Answer, text: str) -> str:
        """How an answer differs from Spark's; empty if it does not. Ties at a LIMIT may be any of the tied rows."""
        try:
            require_same(actual, answer.table, order=answer.order)
        except DifferentError as error:
            if not answer.order or not _LIMIT.search(text):
                return str(error)
        else:
            return ""
        unlimited = self._spark.sql(_LIMIT.sub("", text)).toArrow()
        try:
            require_same(actual, answer.table, order=answer.order, unlimited=unlimited)
        except DifferentError as error:
            return str(error)
        return ""


def _order_of(plan: Any) -> tuple[str, ...]:
    """The answer's columns by which the outermost ORDER BY sorts, up to the first key that is not one of them."""
    columns = {
        plan.output().apply(at).exprId(): plan.output().apply(at).name() for at in range(plan.output().size())
    }
    while plan.nodeName() in _ABOVE_SORT:
        plan = plan.children().apply(plan.children().size() - 1)  # of WithCTE, the query comes last
    if plan.nodeName() != "Sort":
        return ()
    order: list[str] = []
    for at in range(plan.order().size()):
        key = plan.order().apply(at).child()
        name = columns.get(key.exprId()) if key.nodeName() == "AttributeReference" else None
        if name is None or list(columns.values()).count(name) > 1:
            break
        order.append(name)
    return tuple(order)
