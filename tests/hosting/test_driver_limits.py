"""A program with a small `spark.driver.maxResultSize`: what is too large is refused, in Spark's words."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
import wallaby
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.driver.maxResultSize", "1m")
    .config("spark.sql.execution.arrow.pyspark.enabled", "true")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
wallaby.enable(spark, attach_timeout=120)
orders = spark.read.parquet(sys.argv[1])
ACTIONS = {
    "collect": lambda df: df.collect(),
    "toPandas": lambda df: df.toPandas(),
    "toArrow": lambda df: df.toArrow(),
}
for on in ("true", "false"):
    spark.conf.set("spark.wallaby.enabled", on)
    for name, action in ACTIONS.items():
        try:
            print(on, name, "gives", len(action(orders.orderBy("o_orderkey"))))
        except Exception as error:
            condition = error.getCondition() if isinstance(error, PySparkException) else None
            is_said = "is bigger than spark.driver.maxResultSize" in str(error)
            print(on, name, condition, is_said, isinstance(error, Py4JJavaError))
spark.conf.set("spark.wallaby.enabled", "true")
print("count", len(orders.groupBy("o_orderpriority").count().collect()))
wallaby.disable(spark)
spark.stop()
"""


@pytest.mark.spark
@pytest.mark.timeout(400)
def test_a_result_that_is_too_large_for_the_driver_is_refused(data: Path) -> None:
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    program = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(next(data.glob("orders*")))],
        capture_output=True,
        text=True,
        env=environment,
        timeout=380,
        check=False,
    )
    assert program.returncode == 0, program.stderr
    said = program.stdout.splitlines()
    actions = ("collect", "toPandas", "toArrow")
    assert said[:3] == [f"true {name} WALLABY_MAX_RESULT_SIZE True True" for name in actions]
    assert said[4:6] == [f"false {name} None True True" for name in actions[1:]], (
        "Spark has no condition for it"
    )
    assert said[6:] == ["count 5"], "what is small is not refused, and the engine goes on"
