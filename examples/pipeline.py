"""A data lake in three layers, made twice: undisturbed, and with a worker killed while each table is written.

Raw CSV and JSON files become cleaned Parquet tables, one of them partitioned by day, and these become tables of
aggregates. Every write has a key, so running a layer again writes nothing. In the end the tables of both lakes are
compared row by row, by Spark alone.

    make pipeline                                    # or: python examples/pipeline.py --help
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import date, timedelta
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import wallaby
from wallaby.engine import Engine

DAYS = 60
FILES = 8
ORDERS = "id long, customer long, day date, amount string, status string"
CUSTOMERS = "country string, id long, name string"
#: Some orders were sent twice, some have no amount, and some are tests.
CLEANED_ORDERS = """
    select id, max(customer) customer, max(cast(nullif(amount, '') as decimal(10, 2))) amount, day
    from raw_orders where status <> 'test' group by id, day having max(nullif(amount, '')) is not null
"""
CLEANED_CUSTOMERS = (
    "select id, trim(name) name, upper(country) country from raw_customers where name is not null"
)
REVENUE = """
    select country, date_trunc('month', day) month, count(*) orders, sum(amount) revenue
    from cleaned_orders o join cleaned_customers c on o.customer = c.id group by 1, 2
"""
BEST = """
    select country, name, revenue from (
        select country, name, sum(amount) revenue,
            row_number() over (partition by country order by sum(amount) desc, name) place
        from cleaned_orders o join cleaned_customers c on o.customer = c.id group by country, name
    ) where place <= 10
"""
#: The tables by layer: name, query, and the column that partitions it.
CLEANED = (("cleaned_orders", CLEANED_ORDERS, "day"), ("cleaned_customers", CLEANED_CUSTOMERS, None))
AGGREGATES = (("revenue", REVENUE, None), ("best_customers", BEST, None))


def main() -> int:
    """Make both lakes and compare them; 1 if they differ."""
    parser = argparse.ArgumentParser(
        description="Build a small data lake twice, killing workers the second time."
    )
    parser.add_argument("--rows", type=int, default=400_000, help="how many orders there are")
    parser.add_argument("--folder", type=Path, help="where the lakes go; a temporary folder if left out")
    given = parser.parse_args()
    if given.folder is not None:
        return build(given.folder.absolute(), given.rows)
    with tempfile.TemporaryDirectory(prefix="wallaby-lake-") as folder:
        return build(Path(folder), given.rows)


def build(folder: Path, rows: int) -> int:
    """Make raw files, both lakes, and the comparison."""
    print(f"raw: {rows:,} orders as CSV, {rows // 20:,} customers as JSON, in {folder / 'raw'}")
    make_raw(folder / "raw", rows)
    spark = (
        SparkSession.builder.master("local[3]")
        .appName("pipeline")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    try:
        with wallaby.attach(spark, workers=2) as engine:
            print("\nundisturbed:")
            make_lake(engine, folder, "calm", lambda act, _path: act())
            print("\nwith a worker killed in the middle of each write:")
            make_lake(engine, folder, "stormy", lambda act, path: with_a_kill(engine, act, path))
            print("\nthe same program again:")
            make_lake(engine, folder, "stormy", lambda act, _path: act())
            return compare(spark, folder)
    finally:
        spark.stop()


def make_raw(raw: Path, rows: int) -> None:
    """Orders as CSV and customers as JSON, the same for the same number of rows."""
    chance = random.Random(rows)  # noqa: S311 - rows for an example
    (raw / "orders").mkdir(parents=True, exist_ok=True)
    (raw / "customers").mkdir(parents=True, exist_ok=True)
    for number in range(FILES):
        with (raw / "orders" / f"{number}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            for order in range(number, rows, FILES):
                day = date(2026, 1, 1) + timedelta(days=chance.randrange(DAYS))
                amount = "" if chance.random() < 0.01 else f"{chance.randrange(100_000) / 100:.2f}"
                status = "test" if chance.random() < 0.02 else "paid"
                for _ in range(2 if chance.random() < 0.03 else 1):
                    writer.writerow([order, chance.randrange(rows // 20), day.isoformat(), amount, status])
    with (raw / "customers" / "0.json").open("w", encoding="utf-8") as file:
        for customer in range(rows // 20):
            country = chance.choice(["at", "au", "de", "fr", "jp"])
            print(
                json.dumps({"country": country, "id": customer, "name": f" Customer {customer} "}), file=file
            )


def make_lake(
    engine: Engine, folder: Path, name: str, run: Callable[[Callable[[], None], Path], str | None]
) -> None:
    """Make all layers of one lake. `run` runs each write to a path, and may have something to say about it."""
    spark, lake = engine.spark, folder / name
    raw = folder / "raw"
    spark.read.schema(ORDERS).csv(str(raw / "orders")).createOrReplaceTempView("raw_orders")
    spark.read.schema(CUSTOMERS).json(str(raw / "customers")).createOrReplaceTempView("raw_customers")
    for layer in (CLEANED, AGGREGATES):
        for table, query, by in layer:
            path = lake / table
            writer = engine.write(spark.sql(query)).option("key", f"{table}-2026")
            if by is not None:
                writer = writer.partitionBy(by)
            before, began = len(files_of(path)), time.monotonic()
            said = run(partial(writer.mode("append").parquet, str(path)), path)
            made = len(files_of(path)) - before
            seconds = time.monotonic() - began
            print(f"  {table}: {made} files in {seconds:.1f} s{f'; {said}' if said else ''}")
            spark.read.parquet(str(path)).createOrReplaceTempView(table)


def with_a_kill(engine: Engine, act: Callable[[], None], path: Path) -> str:
    """Write, and kill a worker as soon as the first file is there, which no reader sees yet."""
    victim = engine.workers()[0]
    before = len(files_of(path))
    over, killed = threading.Event(), threading.Event()

    def kill() -> None:
        while not over.wait(0.01):
            if len(files_of(path)) > before:
                os.kill(victim.pid, signal.SIGKILL)
                killed.set()
                return

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        act()
    finally:
        over.set()
        killer.join()
    return f"worker {victim.id} was killed" if killed.is_set() else "it ended before a worker could be killed"


def files_of(path: Path) -> list[Path]:
    """List the data files of a table, with those that are being written."""
    found = ((Path(folder), names) for folder, _, names in os.walk(path))
    return sorted(folder / name for folder, names in found for name in names if name.endswith(".parquet"))


def compare(spark: SparkSession, folder: Path) -> int:
    """Compare each table of both lakes, by Spark alone."""
    print()
    wrong = 0
    for layer in (CLEANED, AGGREGATES):
        for table, _, _ in layer:
            calm, stormy = (spark.read.parquet(str(folder / name / table)) for name in ("calm", "stormy"))
            same = digest(calm) == digest(stormy)
            wrong += not same
            print(f"{table}: {calm.count():,} rows, {'the same in both lakes' if same else 'DIFFERENT'}")
    left = [path for path in folder.rglob(".*") if path.is_dir()]
    if left:
        print(f"left behind: {left}")
    return 1 if wrong or left else 0


def digest(df: DataFrame) -> tuple[object, ...]:
    """The number of rows and the sum of their hashes: equal for the same rows in any order."""
    hashes = df.select(*sorted(df.columns)).selectExpr("cast(xxhash64(*) as decimal(38, 0)) h")
    return tuple(hashes.selectExpr("count(*)", "sum(h)").collect()[0])


if __name__ == "__main__":
    sys.exit(main())
