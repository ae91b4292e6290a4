"""Measure the road of a query: the modules of the engine in which code runs for one join, in all processes.

`python -m tools.measure.road [data]`, with TPC-H data; decision 33 has the figures. The query has run once before, so
that start-up does not count. To measure another clone, run this file with its Python.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

#: Installed in every Python process: notes each module of the engine that is called while the file `on` exists.
HOOK = """
import os, sys, threading
FOLDER = os.environ.get("WALLABY_ROAD")
seen = set()
def note(frame, event, _argument):
    name = frame.f_code.co_filename
    if event == "call" and name not in seen and "/wallaby/" in name and frame.f_code.co_name != "<module>":
        if os.path.exists(FOLDER + "/on"):
            seen.add(name)
            with open(FOLDER + "/modules", "a") as modules:
                modules.write(name.rsplit("/wallaby/", 1)[1] + "\\n")
if FOLDER:
    threading.setprofile(note)
    sys.setprofile(note)
"""
QUERY = """
select c_mktsegment, count(*) n, sum(l_quantity) q
from lineitem join orders on l_orderkey = o_orderkey join customer on o_custkey = c_custkey
where o_orderdate < date '1995-01-01' group by c_mktsegment order by n
"""
PROGRAM = """
import sys, pathlib
from pyspark.sql import SparkSession
import wallaby
folder, data, query = sys.argv[1:]
spark = SparkSession.builder.master("local[3]").config("spark.ui.enabled", "false").getOrCreate()
for table in ("customer", "lineitem", "orders"):
    spark.read.parquet(f"{data}/{table}.parquet").createOrReplaceTempView(table)
with wallaby.attach(spark, workers=2, threads=1, attach_timeout=300) as engine:
    engine.to_arrow(spark.sql(query))
    pathlib.Path(folder, "on").touch()
    engine.to_arrow(spark.sql(query))
    pathlib.Path(folder, "on").unlink()
spark.stop()
"""


def road(data: Path) -> set[str]:
    """The modules, as paths in the package."""
    with tempfile.TemporaryDirectory(prefix="wallaby-road-") as folder:
        (Path(folder) / "sitecustomize.py").write_text(HOOK, encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": folder, "WALLABY_ROAD": folder}
        command = [sys.executable, "-c", PROGRAM, folder, str(data), QUERY]
        subprocess.run(command, env=environment, check=True)  # noqa: S603 - the program above
        return set((Path(folder) / "modules").read_text(encoding="utf-8").split())


def main(arguments: list[str]) -> int:
    """Print how many modules each room has on the road."""
    found = road(Path(arguments[0] if arguments else ".bench/sf1"))
    rooms = Counter(path.split("/")[0] if "/" in path else "(modules)" for path in found)
    for room, count in rooms.most_common():
        print(f"{count:4} {room}")
    print(f"{len(found):4} in all")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
