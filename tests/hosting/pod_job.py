"""A job as users submit it: it knows nothing of masters, and writes down whether its answers were Spark's."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import wallaby
from wallaby_lab import tpch


def main() -> None:
    data, out = map(Path, sys.argv[1:3])
    spark = SparkSession.builder.getOrCreate()
    engine = wallaby.enable(spark)
    tpch.register(spark, data)
    equal = []
    for number in (3, 6):
        here = spark.sql(tpch.query(number)).toArrow()
        spark.conf.set("spark.wallaby.enabled", "false")
        equal.append(here.equals(spark.sql(tpch.query(number)).toArrow()))
        spark.conf.set("spark.wallaby.enabled", "true")
    natively = [str(record.where) for record in engine.history()]
    told = {
        "equal": equal,
        "natively": natively,
        "workers": len(engine.workers()),
        "memory": engine._parts.deployment.size.memory_bytes,
        "address": engine._parts.deployment._hosting._bootstrap.head_address,
    }
    spark.stop()
    out.with_suffix(".new").write_text(json.dumps(told))
    out.with_suffix(".new").rename(out)


if __name__ == "__main__":
    main()
