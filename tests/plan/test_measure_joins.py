"""The measurement of join orders, over tables small enough to count by hand."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.plan.builders import column, holds, join, literal

from tools.measure.joins import Counting, choices_of, report, summary
from wallaby.relations.relation import DataFile, Filter, Relation, Scan

ITEMS, WEEKS = 50, 20


def scan(folder: Path, name: str, first_id: int, **columns: list[int]) -> Scan:
    path = folder / f"{name}.parquet"
    pq.write_table(pa.table({key: pa.array(values, pa.int64()) for key, values in columns.items()}), path)
    status = path.stat()
    file = DataFile(str(path), status.st_size, status.st_mtime_ns // 1_000_000)
    made = tuple(column(first_id + at, key) for at, key in enumerate(columns))
    return Scan((file,), made, tuple(columns), name)


@pytest.fixture
def query(tmp_path: Path) -> Relation:
    """Each sale meets the stock of its item in all weeks; only then are weeks compared, and one week chosen."""
    sold = [(item, week) for item in range(ITEMS) for week in range(WEEKS)]
    kept = {"item": [i for i, _ in sold], "week": [w for _, w in sold]}
    sales, stock = scan(tmp_path, "sales", 1, **kept), scan(tmp_path, "stock", 11, **kept)
    weeks = scan(tmp_path, "weeks", 21, week=list(range(WEEKS)), year=[w // 10 for w in range(WEEKS)])
    (s_item, s_week), (t_item, t_week), (w_week, _) = sales.columns, stock.columns, weeks.columns
    chosen = Filter(weeks, holds("eq", w_week, literal(3)))
    return join(
        join(sales, stock, (s_item, t_item)),
        chosen,
        (s_week, w_week),
        residual=holds("eq", t_week, w_week),
    )


def test_the_largest_result_on_the_way_is_counted_as_written_as_chosen_and_at_best(query: Relation) -> None:
    (choice,) = choices_of(query)
    measured = Counting().measured(choice)
    assert measured.written == ITEMS * WEEKS, "by item and by week, which follows"
    assert measured.chosen == measured.best == ITEMS
    assert measured.ratio == 1.0


def test_a_line_tells_it(query: Relation, capsys: pytest.CaptureFixture[str]) -> None:
    ratios = report("72", query, Counting())
    assert "72.1: 3 sides, written 1000, chosen 50" in capsys.readouterr().out
    assert summary([*ratios, 4.0]) == (
        "2 choices: the largest result is 2.00 times the least on average, at most 4.0"
    )
