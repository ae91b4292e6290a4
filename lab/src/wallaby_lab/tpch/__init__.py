"""TPC-H: the 22 queries with the specification's validation parameters, and data to run them on.

Data is made by `tpchgen-cli`, which agrees with the TPC's own generator; it is a tool for tests and demonstrations, no
dependency of the engine.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from wallaby.errors import InvalidArgumentError, WallabyError

TABLES: Final = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
QUERIES: Final = range(1, 23)
#: The columns by which each query orders its answer.
ORDERS: Final[dict[int, tuple[str, ...]]] = {
    1: ("l_returnflag", "l_linestatus"),
    2: ("s_acctbal", "n_name", "s_name", "p_partkey"),
    3: ("revenue", "o_orderdate"),
    4: ("o_orderpriority",),
    5: ("revenue",),
    6: (),
    7: ("supp_nation", "cust_nation", "l_year"),
    8: ("o_year",),
    9: ("nation", "o_year"),
    10: ("revenue",),
    11: ("value",),
    12: ("l_shipmode",),
    13: ("custdist", "c_count"),
    14: (),
    15: ("s_suppkey",),
    16: ("supplier_cnt", "p_brand", "p_type", "p_size"),
    17: (),
    18: ("o_totalprice", "o_orderdate"),
    19: (),
    20: ("s_name",),
    21: ("numwait", "s_name"),
    22: ("cntrycode",),
}

_GENERATOR: Final = "tpchgen-cli"
_GENERATE_SECONDS: Final = 3600


class TpchError(WallabyError):
    """Data could not be made or found."""

    condition = "WALLABY_TPCH"


def query(number: int) -> str:
    """The text of a query, in Spark's SQL."""
    if number not in QUERIES:
        raise InvalidArgumentError(f"TPC-H has no query {number}.", fix="Choose one from 1 to 22.")
    return (
        resources.files("wallaby_lab.tpch").joinpath(f"queries/q{number:02d}.sql").read_text(encoding="utf-8")
    )


def generate(directory: Path | str, scale: float = 1.0) -> Path:
    """Make the eight tables as `<table>.parquet` in a directory; at scale 1 they take about 350 MB."""
    if scale <= 0:
        raise InvalidArgumentError(
            f"The scale {scale} is not positive.", fix="Scale 1 is about 1 GB of text."
        )
    target = Path(directory)
    target.mkdir(parents=True, exist_ok=True)
    command = [_generator(), "parquet", "-s", f"{scale:g}", "--output-dir", str(target)]
    try:
        subprocess.run(  # noqa: S603 - the generator's own path, and no shell
            command, check=True, capture_output=True, text=True, timeout=_GENERATE_SECONDS
        )
    except subprocess.CalledProcessError as error:
        raise TpchError(f"{_GENERATOR} failed: {error.stderr.strip()}", directory=str(target)) from error
    except subprocess.TimeoutExpired as error:
        raise TpchError(
            f"{_GENERATOR} took more than {_GENERATE_SECONDS} s.", directory=str(target)
        ) from error
    return target


def register(spark: SparkSession, directory: Path | str) -> None:
    """Make each table of a directory a temporary view of a session."""
    paths = {table: Path(directory) / f"{table}.parquet" for table in TABLES}
    missing = sorted(table for table, path in paths.items() if not path.exists())
    if missing:
        raise TpchError(
            f"{directory} has no Parquet data for {', '.join(missing)}.",
            fix="Make it with `wallaby tpch generate` or `wallaby_lab.tpch.generate`.",
            directory=str(directory),
        )
    for table, path in paths.items():
        spark.read.parquet(str(path)).createOrReplaceTempView(table)


def _generator() -> str:
    beside = Path(sys.executable).with_name(_GENERATOR)
    found = str(beside) if beside.exists() else shutil.which(_GENERATOR)
    if found is None:
        raise TpchError(f"There is no {_GENERATOR}.", fix=f"Install it: pip install {_GENERATOR}")
    return found
