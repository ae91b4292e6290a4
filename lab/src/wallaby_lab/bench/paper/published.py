"""The paper's numbers, by figure. Its bars by query are only drawn, so these numbers are from its text.

It measured TPC-H at scale 100 on 4 r6id.2xlarge, 16 r6id.xlarge and 32 r6id.xlarge workers, with Quokka, SparkSQL 3.3
and Trino 398.
"""

from __future__ import annotations

from typing import Final

PAPER_WORKERS: Final = (4, 16, 32)
#: By figure: a statement, and its values by number of workers; None where the text has none.
PUBLISHED: Final[dict[str, tuple[tuple[str, tuple[float | None, float | None, float | None]], ...]]] = {
    "a": (
        ("times as fast as SparkSQL, geometric mean of 22 queries", (2.1, 1.9, 1.92)),
        ("times as fast as Trino with fault tolerance, geometric mean", (1.25, 1.7, 1.86)),
    ),
    "b": (
        ("pipelined over stagewise, geometric mean of queries 3, 5, 7, 8, 9 and 10", (1.26, 1.22, None)),
        ("the most, query 8", (1.28, 1.28, None)),
    ),
    "c": (),
    "d": (
        ("write-ahead lineage, overhead, geometric mean of 8 queries", (1.15, 1.06, None)),
        ("Trino spooling to HDFS, overhead, geometric mean", (1.5, 2.7, None)),
        ("Trino spooling to HDFS, the most, query 9", (None, 4.8, None)),
    ),
    "e": (
        ("Quokka's ratio over SparkSQL's, geometric mean of 8 queries", (None, 0.99, None)),
        ("running the query again", (None, 1.5, None)),
    ),
    "f": (("running the query again after half of it", (None, 1.5, None)),),
    "g": (
        ("times as fast as SparkSQL, geometric mean", (2.1, 1.9, 1.92)),
        ("Quokka's ratio after a loss over SparkSQL's, geometric mean", (None, 0.99, 1.12)),
    ),
    "policies": (),
}
#: By figure: what the paper says without a number.
SAID: Final = {
    "a": "Best where a query is one join tree (8, 9, 12), worst with nested subqueries (2, 4, 20, 21).",
    "b": "No difference for queries 1 and 6, which are little more than a read.",
    "c": "A batch of 8 beats one of 128 on 4 workers, the reverse on 16; dynamic is about as good as the better one.",
    "d": "Spooling to S3 costs Quokka about as much as Trino's to HDFS, except for queries 1 and 6; checkpoints to S3 "
    "cost much more than spooling, most where a join's build side grows.",
    "e": "Simple queries lose less. Both are far better than running the query again.",
    "f": "The later the loss, the more it costs, and always less than running the query again.",
    "g": "On 32 workers Quokka's recovery falls behind SparkSQL's, since only as many workers as there are stages take "
    "part.",
    "policies": "Table I compares the systems by their parts; it has no measurements.",
}
