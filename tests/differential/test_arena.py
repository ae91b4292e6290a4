"""An answer that is too large for Spark's driver is not asked of Spark, and said to be so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from wallaby.differential.arena import ROWS_MAX, Arena


class Fake:
    """A session, a DataFrame and an engine in one, which count what Spark is asked."""

    def __init__(self, rows: int) -> None:
        self.rows = pa.table({"a": pa.nulls(rows, pa.int32())})
        self.asked = 0

    def sql(self, _: str) -> Fake:
        return self

    def fallback_reasons(self, _: object) -> list[str]:
        return []

    def to_arrow(self, _: object) -> pa.Table:
        return self.rows

    def toArrow(self) -> pa.Table:  # noqa: N802 - the name is PySpark's
        self.asked += 1
        return self.rows


@pytest.mark.parametrize(("rows", "how", "asked"), [(3, "native", 1), (ROWS_MAX + 1, "large", 0)])
def test_large_answers_are_not_compared(rows: int, how: str, asked: int, tmp_path: Path) -> None:
    fake: Any = Fake(rows)
    assert Arena(fake, fake, tmp_path).ask("select …").how == how
    assert fake.asked == asked
