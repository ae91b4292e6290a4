"""Random queries whose intermediate results are many times their input, over small generated tables.

A query is a chain of joins (with few key values, so that each row meets many), cross joins and explodes, up to some
hundred thousand rows of up to a kilobyte in between, under an aggregation, a window or a sort. A seed gives one query
for ever. All values are whole numbers, dates and text, so that an answer is Spark's to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

#: No relation of a query has more rows than about this.
ROWS_MAX: Final = 600_000
_DATA_SEED: Final = 20_261_116
_WORDS: Final = ("wombat", "quoll", "bilby", "numbat", "dunnart", "potoroo", "bettong", "quokka")


_TOPS: Final = (
    "select count(*) n, sum(v) s, min(txt) a, max(txt) b from ({0})",
    "select k, count(*) n, sum(v) s, max(txt) b from ({0}) group by k",
    "select k, count(distinct txt) n, count(distinct v) m from ({0}) group by k",
    "select v, txt, count(*) n from ({0}) group by v, txt order by n desc, v, txt limit 50",
    "select * from ({0}) order by txt, v, k limit 100",
    "select sum(length(repeat(txt, 5))) s, max(repeat(txt, 20)) b from ({0})",
    """select k, max(r) r, sum(d) s from (select k, row_number() over (partition by k order by v, txt) r,
    v - lag(v) over (partition by k order by v, txt) d from ({0})) group by k""",
    """select k, sum(size(c)) n, max(size(c)) m
    from (select k, v % 100 w, collect_list(v) c from ({0}) group by k, v % 100) group by k""",
    "select count(*) n, sum(e) s from ({0}) lateral view explode(array(v, k, length(txt))) x as e",
)


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the workload: its rows, and how many values each key column has."""

    name: str
    rows: int
    distinct: tuple[tuple[str, int], ...]
    text_bytes: int


TABLES: Final = (
    Table("facts", 20_000, (("few", 40), ("some", 500), ("many", 10_000)), 40),
    Table("events", 8_000, (("few", 40), ("some", 500), ("many", 4_000)), 120),
    Table("labels", 1_000, (("few", 40), ("some", 500)), 400),
)


def generate(directory: Path) -> Path:
    """Write the tables as Parquet files; the same every time."""
    directory.mkdir(parents=True, exist_ok=True)
    for table in TABLES:
        random = Random(f"{_DATA_SEED} {table.name}")
        columns: dict[str, list[object]] = {"id": list(range(table.rows))}
        for key, distinct in table.distinct:
            columns[key] = [
                None if random.random() < 0.01 else random.randrange(distinct) for _ in range(table.rows)
            ]
        columns["v"] = [random.randrange(-1_000_000, 1_000_000) for _ in range(table.rows)]
        columns["txt"] = [_text(random, table.text_bytes) for _ in range(table.rows)]
        columns["arr"] = [
            [random.randrange(100) for _ in range(random.randrange(20))] for _ in range(table.rows)
        ]
        pq.write_table(pa.table(columns), directory / f"{table.name}.parquet", row_group_size=2_000)
    return directory


def register(spark: SparkSession, directory: Path) -> None:
    """Make each table a temporary view."""
    for table in TABLES:
        spark.read.parquet(str(directory / f"{table.name}.parquet")).createOrReplaceTempView(table.name)


def query(seed: int) -> str:
    """The query of a seed."""
    random = Random(f"exploding {seed}")
    rows = _first(random)
    for _ in range(random.randint(1, 3)):
        rows = _grown(rows, random)
    return _top(rows, random)


@dataclass(frozen=True, slots=True)
class _Rows:
    """A relation as SQL, with columns k (a key), v (a number) and txt; and its approximate rows and keys."""

    sql: str
    rows: int
    distinct: int


def _first(random: Random) -> _Rows:
    table = random.choice(TABLES)
    key, distinct = random.choice(table.distinct)
    return _Rows(f"select {key} k, v, txt from {table.name}", table.rows, distinct)


def _grown(rows: _Rows, random: Random) -> _Rows:
    """Add a join or explode, as large as is allowed."""
    ways = [_joined, _joined, _joined, _exploded, _crossed]
    return random.choice(ways)(rows, random)


def _joined(rows: _Rows, random: Random) -> _Rows:
    table = random.choice(TABLES)
    key, distinct = random.choice(table.distinct)
    kind = random.choice(
        ("join", "join", "join", "left join", "right join", "full join", "left semi join", "left anti join")
    )
    product = rows.rows * table.rows // max(rows.distinct, distinct)
    share = ROWS_MAX / max(product, 1)
    right = f"select {key} k, v, txt from {table.name}" + _sampled(share)
    condition = random.choice(
        ("", " and l.v < r.v", " and l.v + r.v > 0", " and l.txt < r.txt", " and (l.v + r.v) % 3 = 0")
    )
    inside = kind in ("left semi join", "left anti join")
    chosen = (
        "l.k, l.v, l.txt"
        if inside
        else random.choice(
            (
                "coalesce(l.k, r.k) k, coalesce(l.v, r.v) v, concat(l.txt, r.txt) txt",
                "r.k, l.v, r.txt",
                "l.k, r.v, l.txt",
            )
        )
    )
    sql = f"select {chosen} from ({rows.sql}) l {kind} ({right}) r on l.k = r.k{condition}"
    grown = rows.rows if inside else min(product, ROWS_MAX)
    left = rows.distinct if inside else min(rows.distinct, distinct)
    return replace(rows, sql=sql, rows=max(grown, 1), distinct=left)


def _exploded(rows: _Rows, random: Random) -> _Rows:
    times = max(min(random.choice((5, 40, 300)), ROWS_MAX // rows.rows), 1)
    sql = f"select k, v + e v, txt from ({rows.sql}) lateral view explode(sequence(1, {times})) x as e"
    return replace(rows, sql=sql, rows=rows.rows * times)


def _crossed(rows: _Rows, random: Random) -> _Rows:
    table = random.choice(TABLES)
    count = max(min(random.choice((20, 200, 1_000)), ROWS_MAX // rows.rows), 1)
    condition = random.choice(("", " where l.v < r.v", " where l.v > r.v"))
    right = f"select id, v, txt from {table.name} where id < {count}"
    sql = f"select l.k, l.v + r.v v, r.txt from ({rows.sql}) l cross join ({right}) r{condition}"
    return replace(rows, sql=sql, rows=rows.rows * count)


def _top(rows: _Rows, random: Random) -> str:
    return random.choice(_TOPS).format(rows.sql)


def _sampled(share: float) -> str:
    """A condition that keeps about a share of a table's rows."""
    return "" if share >= 1 else f" where id % 1000 < {max(int(share * 1000), 1)}"


def _text(random: Random, size: int) -> str:
    words: list[str] = []
    while sum(map(len, words)) < size:
        words.append(random.choice(_WORDS))
    return " ".join(words)[: random.randint(size // 2, size)]
