"""What the exchange tests share: bodies of every kind, slices of them, and a receiver that remembers."""

from __future__ import annotations

import datetime
import threading
from decimal import Decimal

import pyarrow as pa

from wallaby.exchange.body import Body, size_of
from wallaby.lineage.effects import PushReply, Slice
from wallaby.lineage.names import Edge, QueryId, TaskName, WorkerId

EDGE = Edge(0, 0, 0)
QUERY, SENDER, TARGET = QueryId("q-1"), WorkerId("w-1"), WorkerId("w-2")


def numbers(rows: int, start: int = 0) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(range(start, start + rows), pa.int64())})


def large(size_bytes: int, value: int = 0) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array([value], pa.int64()).take(pa.array([0] * (size_bytes // 8)))})


def _dictionaries() -> tuple[pa.RecordBatch, ...]:
    """Two batches whose dictionaries differ, and one that is a part of an array."""
    one = pa.array(["a", "b", None, "a"]).dictionary_encode()
    other = pa.array(["x", "y", "x", "z"]).dictionary_encode()
    return tuple(pa.record_batch({"d": values}) for values in (one, other, one[1:3]))


def _nested() -> pa.RecordBatch:
    return pa.record_batch(
        {
            "list": pa.array([[1, 2], None, [], [3]], pa.list_(pa.int32())),
            "struct": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}, {"a": 3, "b": None}]),
            "map": pa.array([[("k", 1)], [], None, [("l", None)]], pa.map_(pa.string(), pa.int64())),
            "deep": pa.array([[[{"a": [1]}]], [[]], None, []]),
        }
    )


def _scalars() -> pa.RecordBatch:
    day = datetime.date(2024, 2, 29)
    moment = datetime.datetime(2024, 2, 29, 12, 30, 1, 5, tzinfo=datetime.UTC)
    return pa.record_batch(
        {
            "bool": pa.array([True, None, False]),
            "i8": pa.array([1, None, -1], pa.int8()),
            "f64": pa.array([1.5, float("nan"), None]),
            "dec": pa.array(
                [Decimal("1.23"), None, Decimal("-99999999999999999999.99")], pa.decimal128(38, 2)
            ),
            "wide": pa.array([Decimal(10) ** 50, None, Decimal(1)], pa.decimal256(76, 0)),
            "text": pa.array(["", None, "größe 🦘"]),
            "long": pa.array(["a" * 50, None, ""], pa.large_string()),
            "view": pa.array(["short", None, "longer than twelve bytes"], pa.string_view()),
            "bytes": pa.array([b"\x00\x80", None, b""]),
            "date": pa.array([day, None, day]),
            "at": pa.array([moment, None, moment], pa.timestamp("us", "UTC")),
            "null": pa.nulls(3),
        }
    )


#: A body of every kind, by name.
BODIES: dict[str, Body] = {
    "none": None,
    "one row": (numbers(1),),
    "several batches": (numbers(3), numbers(1, 3), numbers(5, 4)),
    "a zero-row batch alone": (numbers(0),),
    "zero-row batches between": (numbers(0), numbers(2), numbers(0), numbers(0), numbers(1)),
    "parts of an array": (numbers(100).slice(13, 7), numbers(100).slice(99, 1), numbers(100).slice(4, 0)),
    "no columns": (pa.record_batch([pa.nulls(4)], ["x"]).select([]),),
    "dictionaries": _dictionaries(),
    "nested": (_nested(), _nested().slice(1, 2)),
    "scalars": (_scalars(), _scalars().slice(2, 1)),
    "schema metadata": (numbers(2).replace_schema_metadata({"k": "v"}),),
    "several chunks long": (large(3 << 20, 7), numbers(2), large(1 << 20, 9)),
    "a chunk's length": (large((1 << 20) - 400),),
}


def piece(body: Body, seq: int = 0, *, final: bool = False, edge: Edge = EDGE) -> Slice:
    return Slice(TaskName(0, edge.producer, seq), edge, final, size_of(body), body)


def assert_same_body(actual: object, expected: Body) -> None:
    """The same values, schemas and batch boundaries."""
    if not expected:
        assert actual is None
        return
    assert isinstance(actual, tuple)
    assert [batch.num_rows for batch in actual] == [batch.num_rows for batch in expected]
    for one, other in zip(actual, expected, strict=True):
        assert one.schema.equals(other.schema, check_metadata=True)
        for column, its in zip(one.columns, other.columns, strict=True):
            column.validate(full=True)
            assert str(column.to_pylist()) == str(its.to_pylist())  # as text, for NaN is not itself


def assert_same(actual: tuple[Slice, ...], expected: tuple[Slice, ...]) -> None:
    names = [[(s.task, s.edge, s.final, s.size_bytes) for s in slices] for slices in (actual, expected)]
    assert names[0] == names[1]
    for one, other in zip(actual, expected, strict=True):
        assert_same_body(one.body, other.body)  # type: ignore[arg-type]


class Receiver:
    """Takes everything, remembers it, and can be told to refuse, to wait or to break."""

    def __init__(self) -> None:
        self.calls: list[tuple[QueryId, int, WorkerId, WorkerId, tuple[Slice, ...]]] = []
        self.accepts = True
        self.full: set[Edge] = set()
        self.error: Exception | None = None
        self.waits_for: threading.Barrier | threading.Event | None = None
        self._lock = threading.Lock()

    @property
    def slices(self) -> tuple[Slice, ...]:
        return tuple(piece for call in self.calls for piece in call[-1])

    def __call__(
        self, query: QueryId, epoch: int, sender: WorkerId, target: WorkerId, slices: tuple[Slice, ...]
    ) -> PushReply:
        if self.waits_for is not None:
            self.waits_for.wait(10)
        if self.error is not None:
            raise self.error
        with self._lock:
            self.calls.append((query, epoch, sender, target, slices))
        if not self.accepts:
            return PushReply(accepted=False)
        return PushReply(True, tuple(piece.edge not in self.full for piece in slices))
