"""TPC-DS: its 24 tables and 99 queries, made by DuckDB's generator.

The generator is an extension of one DuckDB version, which lives in a directory of its own (`make tpcds`). It also
knows the queries. `generate` writes them beside the tables, so no query text is kept here. Spark reads all of them once
double-quoted names have become names in backticks.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from wallaby.errors import InvalidArgumentError, WallabyError

TABLES: Final = (
    "call_center",
    "catalog_page",
    "catalog_returns",
    "catalog_sales",
    "customer",
    "customer_address",
    "customer_demographics",
    "date_dim",
    "household_demographics",
    "income_band",
    "inventory",
    "item",
    "promotion",
    "reason",
    "ship_mode",
    "store",
    "store_returns",
    "store_sales",
    "time_dim",
    "warehouse",
    "web_page",
    "web_returns",
    "web_sales",
    "web_site",
)
QUERIES: Final = range(1, 100)

_GENERATOR: Final = Path(__file__).with_name("generator.py")
_GENERATE_SECONDS: Final = 3 * 3600


class TpcdsError(WallabyError):
    """Data could not be made or found."""

    condition = "WALLABY_TPCDS"


def generate(directory: Path | str, packages: Path | str, scale: float = 1.0) -> Path:
    """Write the tables as `<table>.parquet` and the queries as `queries/qNN.sql`; scale 1 takes about 370 MB.

    `packages` is the directory that holds DuckDB and its tpcds extension.
    """
    if scale <= 0:
        raise InvalidArgumentError(
            f"The scale {scale} is not positive.", fix="Scale 1 is about 1 GB of text."
        )
    target, found = Path(directory), Path(packages)
    if not (found / "duckdb_extension_tpcds").is_dir():
        raise TpcdsError(f"{found} has no TPC-DS generator.", fix="Install it with `make tpcds`.")
    target.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, str(_GENERATOR), str(target), f"{scale:g}"]
    environment = {**os.environ, "PYTHONPATH": str(found.absolute())}
    try:
        subprocess.run(  # noqa: S603 - our own script, and no shell
            command, check=True, capture_output=True, text=True, timeout=_GENERATE_SECONDS, env=environment
        )
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["no reason was given"])[-1]
        raise TpcdsError(f"The TPC-DS generator failed: {last}", directory=str(target)) from error
    except subprocess.TimeoutExpired as error:
        raise TpcdsError(
            f"The TPC-DS generator took more than {_GENERATE_SECONDS} s.", directory=str(target)
        ) from error
    return target


def query(directory: Path | str, number: int) -> str:
    """The text of a query, in Spark's SQL, as it was written beside the tables."""
    if number not in QUERIES:
        raise InvalidArgumentError(f"TPC-DS has no query {number}.", fix="Choose one from 1 to 99.")
    path = Path(directory) / "queries" / f"q{number:02d}.sql"
    if not path.exists():
        raise _incomplete(directory, path.name)
    return path.read_text(encoding="utf-8").strip().rstrip(";").replace('"', "`")


def register(spark: SparkSession, directory: Path | str) -> None:
    """Make each table of a directory a temporary view of a session."""
    paths = {table: Path(directory) / f"{table}.parquet" for table in TABLES}
    missing = sorted(table for table, path in paths.items() if not path.exists())
    if missing:
        raise _incomplete(directory, ", ".join(missing))
    for table, path in paths.items():
        spark.read.parquet(str(path)).createOrReplaceTempView(table)


def _incomplete(directory: Path | str, what: str) -> TpcdsError:
    return TpcdsError(
        f"{directory} has no {what}.", fix="Make it with `wallaby tpcds generate`.", directory=str(directory)
    )
