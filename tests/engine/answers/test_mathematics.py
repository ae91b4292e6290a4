"""Functions that Spark computes by Java's `StrictMath`: every bit is Java's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from wallaby.engine import Engine

COUNT = 20_000
#: Where methods change, and where results leave the doubles; the numbers next to these are tried too.
PLACES = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, np.inf, -np.inf, np.nan),
    *(5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 2.0**31, 2.0**53, 2.0**64, 2.0**-28, 2.0**-54),
    *(709.782712893384, -745.1332191019411, 710.4758600739439, 22.0, 1024.0, -1075.0),
    *(0.34657359, 1.03972077, 0.4375, 0.6875, 1.1875, 2.4375, 0.41421356, -0.29289322, 0.975),
)
ONE = (
    "exp",
    "expm1",
    "ln",
    "log10",
    "log1p",
    "log2",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "atanh",
    "cbrt",
)
TWO = ("log", "pow", "atan2", "hypot")


def values(random: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Of all sizes, and more of those at which functions are used."""
    count = COUNT // 4
    return np.concatenate(
        [
            random.integers(0, 1 << 64, count, dtype=np.uint64).view(np.float64),
            random.normal(size=count) * random.choice([1e-3, 1.0, 10.0, 300.0], count),
            np.round(random.uniform(-50, 50, count) * 4) / 4,
            1 + random.normal(size=count) * 10.0 ** random.integers(-17, 0, count),
        ]
    )


@pytest.fixture(scope="module")
def numbers(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    random = np.random.default_rng(17)
    with np.errstate(all="ignore"):
        places = np.array(PLACES)
        places = np.concatenate([places, np.nextafter(places, np.inf), np.nextafter(places, -np.inf)])
        first, second = (found.ravel() for found in np.meshgrid(places, places))
        x, y = (np.concatenate([pairs, values(random)]) for pairs in (first, second))
    random.shuffle(y[len(first) :])
    path: Path = tmp_path_factory.mktemp("numbers") / "numbers.parquet"
    pq.write_table(pa.table({"id": range(len(x)), "x": x, "y": y}), path)
    spark.read.parquet(str(path)).createOrReplaceTempView("numbers")
    return "numbers"


@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_every_bit_is_that_of_java(name: str, numbers: str, spark: SparkSession, engine: Engine) -> None:
    call = f"{name}(x)" if name in ONE else f"{name}(x, y)"
    query = spark.sql(f"select id, x, y, {call} found from {numbers}")
    assert engine.fallback_reasons(query) == []
    ours, theirs = (answer.sort_by("id") for answer in (engine.to_arrow(query), query.toArrow()))
    found, expected = ours.column("found").combine_chunks(), theirs.column("found").combine_chunks()
    assert found.is_null().equals(expected.is_null())
    differ = _bits(found) != _bits(expected)
    assert not differ.any(), theirs.filter(pa.array(differ)).slice(0, 3).to_pylist()


def _bits(numbers: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """To Spark there is one NaN."""
    filled = numbers.fill_null(0.0).to_numpy(zero_copy_only=False)
    return np.where(np.isnan(filled), np.nan, filled).view(np.int64)
