"""The table of actions in docs/using.md names every method of PySpark's DataFrames and writers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import DataFrameWriter
from pyspark.sql.classic.dataframe import DataFrame
from pyspark.sql.readwriter import DataFrameWriterV2

PAGE = Path(__file__).parents[2] / "docs" / "using.md"
#: Methods with a family name in the table.
FAMILIES = {
    "withColumn": ("withColumnRenamed", "withColumns", "withColumnsRenamed", "withMetadata"),
    "sparkSession": ("sql_ctx",),
}


@pytest.mark.parametrize("kind", [DataFrame, DataFrameWriter, DataFrameWriterV2])
def test_every_method_is_in_the_table(kind: type) -> None:
    text = PAGE.read_text(encoding="utf-8")
    table = text[text.index("| action | what runs here |") : text.index("(differential.md#spark-above)")]
    words = set(re.findall(r"\w+", table))
    for name, others in FAMILIES.items():
        words |= set(others) if name in words else set()
    assert [name for name in dir(kind) if not name.startswith("_") and name not in words] == []
