"""Answers in files: what the rule for rounding lets pass, and that a wrong answer does not."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from wallaby.errors import InvalidArgumentError
from wallaby_lab.tpch.answers import answer_file, difference

ANSWER = pa.table(
    {
        "name": ["b", "a", "a"],
        "day": [date(2024, 1, 1)] * 3,
        "orders": [3, 1, 2],
        "sum": pa.array([Decimal("100.50"), Decimal("7.00"), Decimal("0.00")], pa.decimal128(12, 2)),
        "share": pa.array([Decimal("0.041486"), Decimal("0.5"), Decimal(1)], pa.decimal128(12, 6)),
        "average": [25.522005853257337, 1e9, -3.5],
    }
)
RIGHT = [
    "name|day|orders|total|share|average",
    "a|2024-01-01|1|7|0.5|1000000001",
    "a |2024-01-01|2|0.0000|1.0000000|-3.5",
    "b|2024-01-01|3|100.5000|0.0414855|25.522",
]
WRONG = {
    "a text": ("b|", "c|"),
    "a day": ("a|2024-01-01|1", "a|2024-01-02|1"),
    "a count": ("a|2024-01-01|1|", "a|2024-01-01|0|"),
    "a sum by a thousandth and more": ("100.5000", "100.5060"),
    "a ratio beyond its last digit": ("0.0414855", "0.0414850"),
    "an average by a ten-thousandth": ("25.522", "25.525"),
    "a sign": ("-3.5", "3.5"),
    "a number that is none": ("|-3.5", "|x"),
    "a column more": ("|-3.5", "|-3.5|1"),
    "a row more": ("a |", "a|2024-01-01|1|7|0.5|1000000001\na |"),
}


def written(directory: Path, text: str) -> Path:
    path = directory / "q01.csv"
    path.write_text(text + "\n", encoding="utf-8")
    return path


def test_the_same_answer_is_the_same_in_any_order_and_with_more_digits(tmp_path: Path) -> None:
    assert difference(ANSWER, written(tmp_path, "\n".join(RIGHT))) == ""


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_answer_is_found(tmp_path: Path, what: str) -> None:
    text = "\n".join(RIGHT)
    assert text.count(WRONG[what][0]) == 1
    assert difference(ANSWER, written(tmp_path, text.replace(*WRONG[what])))


def test_an_empty_answer_is_an_answer(tmp_path: Path) -> None:
    assert difference(ANSWER.slice(0, 0), written(tmp_path, RIGHT[0])) == ""
    assert difference(ANSWER, written(tmp_path, RIGHT[0])) == "3 rows instead of 0"


def test_a_directory_without_answers_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"has no q07\.csv"):
        answer_file(tmp_path, 7)
