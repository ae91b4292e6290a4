"""What is asked of Spark: not what is too large for its driver, and not what it has run already. Crashes are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from wallaby_lab.differential.arena import IN_DOUBT, ROWS_MAX, ComparisonArena


class Fake:
    """A session, a DataFrame and an engine in one, which count what Spark is asked."""

    def __init__(self, rows: int, *reasons: str) -> None:
        self.rows = pa.table({"a": pa.nulls(rows, pa.int32())})
        self.asked = 0
        self.reasons = list(reasons)
        self.is_wholly_native = not reasons
        self.native = True

    def sql(self, _: str) -> Fake:
        return self

    def fallback_reasons(self, _: object) -> list[str]:
        return self.reasons

    def run(self, _: object) -> Fake:
        return self

    def arrow(self) -> pa.Table:
        return self.rows

    def toArrow(self) -> pa.Table:  # noqa: N802 - the name is PySpark's
        self.asked += 1
        return self.rows


@pytest.mark.parametrize(("rows", "how", "asked"), [(3, "native", 1), (ROWS_MAX + 1, "large", 0)])
def test_large_answers_are_not_compared(rows: int, how: str, asked: int, tmp_path: Path) -> None:
    fake: Any = Fake(rows)
    assert ComparisonArena(fake, fake, tmp_path).ask("select …").how == how
    assert fake.asked == asked


@pytest.mark.parametrize(
    ("reason", "how", "different", "asked"),
    [
        ("Sample: it is random", "spark", False, 0),
        ("plan: local rows need no engine", "local", False, 0),
        ("Spark leaf 1, Sample: it is random", "leaf", False, 1),
        ("plan: planning it failed with KeyError: 3 (please report it with the query)", "spark", True, 0),
    ],
)
def test_what_spark_has_run_is_not_asked_again_and_a_defect_is_a_difference(
    reason: str, how: str, different: bool, asked: int, tmp_path: Path
) -> None:
    fake: Any = Fake(3, reason)
    verdict = ComparisonArena(fake, fake, tmp_path).ask("select …")
    assert (verdict.how, bool(verdict.different), fake.asked) == (how, different, asked)


def test_a_query_with_a_value_in_doubt_is_sparks(tmp_path: Path) -> None:
    fake: Any = Fake(3)
    fake.native = False
    verdict = ComparisonArena(fake, fake, tmp_path).ask("select …")
    assert (verdict.how, verdict.different, fake.asked) == ("spark", "", 0)
    assert verdict.reasons == (IN_DOUBT,)


def test_a_crash_is_a_difference(tmp_path: Path) -> None:
    fake: Any = Fake(3)

    def crash() -> pa.Table:
        raise KeyError("lost")

    fake.arrow = crash
    assert "KeyError: 'lost'" in ComparisonArena(fake, fake, tmp_path).ask("select …").different
