"""Write a difference as a PySpark script: tables, settings, query and top, and both answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from wallaby_lab.differential.generated.schemas import RandomTable
from wallaby_lab.differential.script import head, prepared
from wallaby_lab.differential.tops.arena import TopCase

_TPCH: Final = """
from wallaby_lab import tpch

tpch.generate(directory, 0.01)
tpch.register(spark, directory)
"""
_TAIL: Final = '''
from pathlib import Path

from wallaby_lab.differential.tops.catalogue import Top
from wallaby_lab.differential.tops.query import plain

query = """{query}"""
top = {top!r}
spark.sparkContext.setCheckpointDir(directory + "/checkpoints")
spark.conf.set("spark.sql.adaptive.enabled", "{adaptive}")
with wallaby.attach(spark, workers=2, threads=1, spark_errors=False, below="always"{planning}) as engine:
    wallaby.enable(spark)
    for number, enabled in enumerate(("false", "true")):
        spark.conf.set("spark.wallaby.enabled", enabled)
        topped = plain(spark.sql(query), {order!r}, frozenset({inexact!r}), wild={wild})
        try:
            answer, _ = top.act(topped, Path(directory) / f"answer{{number}}")
            print(*answer.to_pylist(), sep="\\n")
        except Exception as error:
            print(str(error).splitlines()[0])
        print("--")
    wallaby.disable(spark)
spark.stop()
'''


def random_script(
    case: TopCase,
    tables: Sequence[RandomTable],
    settings: Mapping[str, str],
    planning: Mapping[str, int],
    what: str,
) -> str:
    """The script of a random query."""
    return prepared(tables, settings, what) + _tail(case, planning)


def tpch_script(case: TopCase, what: str) -> str:
    """The script of a query of TPC-H."""
    return head(what) + _TPCH + _tail(case, {})


def _tail(case: TopCase, planning: Mapping[str, int]) -> str:
    return _TAIL.format(
        query=case.query.replace("\\", "\\\\").replace('"""', '\\"\\"\\"'),
        top=case.top,
        adaptive=str(case.top.adaptive).lower(),
        planning="".join(f", {key}={value}" for key, value in planning.items()),
        order=case.order,
        inexact=sorted(case.inexact),
        wild=case.wild,
    )
