"""Check tables of Delta Lake and Iceberg on the Spark of this environment; `tools.run_lakes` runs it.

One session and one engine run every step. Usage: python -m tools.lakes.check JARS RESULT [NAME…]: the jars; a file that
gets the outcome of each step as JSON; only steps of these names, as in `DeltaChecks.keys` or `keys`.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession

import wallaby
from tools.lakes.delta import DeltaChecks
from tools.lakes.iceberg import IcebergChecks


def session(jars: str, folder: Path) -> SparkSession:
    """A session with the catalogs of both."""
    return (
        SparkSession.builder.master("local[4]")
        .config("spark.jars", jars)
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.databricks.delta.snapshotPartitions", "2")
        .config(
            "spark.sql.extensions",
            "io.delta.sql.DeltaSparkSessionExtension,"
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        )
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.catalog.ice", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.ice.type", "hadoop")
        .config("spark.sql.catalog.ice.warehouse", str(folder / "iceberg"))
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .getOrCreate()
    )


def main(jars: str, result: Path, names: list[str]) -> int:
    """Run the steps, and write down how each ended; 1 if one failed."""
    outcomes: list[dict[str, str]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = session(jars, folder)
        spark.sparkContext.setLogLevel("OFF")
        print(f"Spark {spark.version}", flush=True)
        engine = wallaby.enable(spark, workers=2, threads=1, attach_timeout=900, lease=15, spark_errors=False)
        spark.conf.set("spark.wallaby.below", "always")
        spark.conf.set("spark.wallaby.leaf.minimum", "0")
        suites = [suite(spark, engine, folder) for suite in (DeltaChecks, IcebergChecks)]
        for part, step in (each for suite in suites for each in suite.steps()):
            title = step.__qualname__
            if names and not any(title.endswith(each) for each in names):
                continue
            began, why = time.monotonic(), ""
            try:
                step()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is the outcome of this step
                why = f"{type(error).__name__}: {error}"
            outcomes.append({"part": part, "step": title, "failed": why})
            print(f"{time.monotonic() - began:6.0f} s  {title}: {why or 'good'}", flush=True)
            result.write_text(json.dumps(outcomes), encoding="utf-8")
        wallaby.disable(spark)
        spark.stop()
    return int(any(outcome["failed"] for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))
