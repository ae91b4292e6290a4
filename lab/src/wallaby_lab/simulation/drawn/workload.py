"""Toy queries for the simulation: random stage graphs, operators on small integers, and their answers.

The operators are chosen to reveal what the protocol must prevent. They change their state in place, so a task that is
executed twice shows; `distinct` emits as it goes, so its outputs depend on the draws and a retried task has other
bytes; `join` needs its build side whole; `limit` and `at least` end early, and what feeds the latter may feed others
too; reads and look-ups give other bytes with and without their side inputs; `sum`, `join` and look-ups hand out a few
rows a task and leave the others as a rest, which is lost if nobody goes on with it. The answer is computed from the
tables alone, without channels, tasks or order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import prod
from random import Random
from typing import Any

from wallaby.errors import DivergenceError, QueryError
from wallaby.lineage.effects import Execute, Executed, Output, Slice
from wallaby.lineage.graph import Link, LinkKind, Routing, Stage, StageGraph, StageKind
from wallaby.lineage.names import Edge, TaskName

Row = tuple[int, int]
Rows = tuple[Row, ...]
ROW_BYTES = 8
_CHECKSUM = (1 << 64) - 1
_MODULUS = 1_000_003
#: How many rows a task of `sum`, `join` or a look-up outputs before it leaves a rest.
PORTION = 3
#: The key of a join's state for rows that it has not output yet; not a key of any row.
_WAITING = -1


class Operator(Enum):
    """What a stage computes."""

    SCAN = "scan"
    SCAN_JOIN = "scan joined with a broadcast"
    SCAN_FILTERED = "scan under a run-time filter"
    MAP = "map"
    DISTINCT = "distinct"
    SUM = "sum"
    JOIN = "join"
    LOOKUP = "look-up in a broadcast"
    AT_LEAST = "at least so many rows"
    LIMIT = "limit"
    COLLECT = "collect"


@dataclass(frozen=True)
class ToyWorkload:
    """A stage graph, the computation of each stage, and the tables of its readers."""

    graph: StageGraph
    operators: tuple[Operator, ...]
    tables: dict[int, tuple[Rows, ...]]
    limit: int
    #: A task that crashes its worker, or raises its own error, whenever it is executed.
    poison: TaskName | None = None
    error: TaskName | None = None
    #: A task of a nondeterministic operator: it gives another output whenever it is executed again.
    fickle: TaskName | None = None

    def step(self, effect: Execute) -> Executed:
        """One step of one channel: the kernel's part."""
        if effect.task == self.error:
            raise QueryError(f"{effect.task} divides by zero.", task=effect.task)
        operator = self.operators[effect.task.stage]
        rows: list[Row] = []
        satisfied = rest = False
        state = effect.state
        match operator:
            case Operator.SCAN | Operator.SCAN_JOIN | Operator.SCAN_FILTERED:
                rows = self._scan(operator, effect)
            case Operator.MAP:
                rows = [(k, (v + 1) % _MODULUS) for k, v in _rows(effect.inputs)]
            case Operator.DISTINCT:
                state = state if state is not None else set()
                rows = [row for row in dict.fromkeys(_rows(effect.inputs)) if row not in state]
                state.update(rows)
            case Operator.SUM:
                state = state if state is not None else Counter()
                for k, v in _rows(effect.inputs):
                    state[k] += v
                portion = sorted(state)[:PORTION] if effect.last else []
                rows = [(k, state.pop(k) % _MODULUS) for k in portion]
                rest = effect.last and bool(state)
            case Operator.JOIN:
                state = state if state is not None else {}
                rows = state.pop(_WAITING, []) + self._join(effect, state)
                state[_WAITING], rows = rows[PORTION:], rows[:PORTION]
                rest = bool(state[_WAITING])
            case Operator.LOOKUP:
                state = state if state is not None else []
                state += _matched(_rows(effect.inputs), map(_rows, effect.sides.values()))
                rows, state[:] = state[:PORTION], state[PORTION:]
                rest = bool(state)
            case Operator.AT_LEAST | Operator.LIMIT:
                state = state if state is not None else [0]
                rows = _rows(effect.inputs)[: self.limit - state[0]]
                state[0] += len(rows)
                satisfied = state[0] == self.limit
                if operator is Operator.AT_LEAST:
                    rows = [(0, state[0])] if satisfied or effect.last else []
            case Operator.COLLECT:
                raise AssertionError("the collector executes nothing")
        output = self._output(effect.task, tuple(rows), satisfied, rest)
        return Executed(state, replace(output, next_split=self._next_split(effect)))

    def _split(self, effect: Execute) -> tuple[Rows, int]:
        """The rows of a split, or of the rest of one, and the number of the first of them."""
        assert effect.split is not None
        splits = self.tables[effect.task.stage]
        part, number = divmod(effect.split, len(splits))
        return splits[number], part * READ_ROWS

    def _next_split(self, effect: Execute) -> int | None:
        if effect.split is None:
            return None
        rows, begin = self._split(effect)
        left = begin + READ_ROWS < len(rows)
        return effect.split + len(self.tables[effect.task.stage]) if left else None

    def _scan(self, operator: Operator, effect: Execute) -> list[Row]:
        rows: Sequence[Row] = ()
        if effect.split is not None:
            all_rows, begin = self._split(effect)
            rows = all_rows[begin : begin + READ_ROWS]
        match operator:
            case Operator.SCAN_JOIN:
                return _matched(list(rows), map(_rows, effect.sides.values()))
            case Operator.SCAN_FILTERED if effect.sides:
                return self._filtered(list(rows), effect)
            case _:
                return list(rows)

    def _filtered(self, rows: list[Row], effect: Execute) -> list[Row]:
        """Apply side inputs: the first filters, the others change the order of rows, each in its own way."""
        first = self.graph.sides(effect.task.stage)[0]
        for link, side in effect.sides.items():
            values = _rows(side)
            if link == first:
                keys = {k for k, _ in values}
                rows = [(k, v) for k, v in rows if k in keys]
            elif link % 2:
                rows = rows[::-1]
            else:
                rows = rows[1:] + rows[:1]
        return rows

    def _join(self, effect: Execute, state: dict[int, Any]) -> list[Row]:
        build = self.graph.phases(effect.task.stage)[0]
        if effect.draw is not None and effect.draw.link in build:
            for k, v in _rows(effect.inputs):
                state.setdefault(k, []).append(v)
            return []
        return [_pair(k, v, w) for k, v in _rows(effect.inputs) for w in state.get(k, ())]

    def _output(self, task: TaskName, rows: Rows, satisfied: bool, rest: bool) -> Output:
        slices: dict[Edge, tuple[int, object]] = {}
        for edge in self.graph.edges_from(task.of):
            link = self.graph.links[edge.link]
            channels = self.graph.stages[link.consumer].channels
            part = (
                rows
                if link.routing is not Routing.HASH
                else tuple(r for r in rows if r[0] % channels == edge.consumer)
            )
            slices[edge] = (ROW_BYTES * len(part), part or None)
        return Output(hash((rows, satisfied, rest)) & _CHECKSUM, slices, satisfied, rest)

    def answer(self) -> Counter[Row]:
        """The rows of the result; with a limit, the rows among which it may choose."""
        results: list[list[Row]] = []
        for stage, operator in enumerate(self.operators):
            inputs = [
                results[k.producer]
                for k in self.graph.links
                if k.consumer == stage and k.kind is LinkKind.MAIN
            ]
            sides = [
                results[k.producer]
                for k in self.graph.links
                if k.consumer == stage and k.kind is LinkKind.SIDE
            ]
            scanned = [row for split in self.tables.get(stage, ()) for row in split]
            flat = [row for fed in inputs for row in fed]
            rows: list[Row] = []
            match operator:
                case Operator.SCAN | Operator.SCAN_FILTERED:
                    rows = scanned
                case Operator.SCAN_JOIN:
                    rows = _matched(scanned, sides)
                case Operator.LOOKUP:
                    rows = _matched(flat, sides)
                case Operator.AT_LEAST:
                    rows = [(0, min(self.limit, len(flat)))]
                case Operator.MAP:
                    rows = [(k, (v + 1) % _MODULUS) for k, v in flat]
                case Operator.DISTINCT:
                    rows = sorted(set(flat))
                case Operator.SUM:
                    rows = [
                        (key, sum(v for k, v in flat if k == key) % _MODULUS)
                        for key in sorted({k for k, _ in flat})
                    ]
                case Operator.JOIN:
                    rows = _matches(inputs[1], inputs[0])
                case Operator.LIMIT | Operator.COLLECT:
                    rows = flat
            results.append(rows)
        return Counter(results[-1])

    def may_fail_with(self, error: QueryError) -> bool:
        """Is this the error of a task that was drawn to fail, or of a nondeterministic one?"""
        if isinstance(error, DivergenceError):
            return self.fickle is not None and error.what.startswith(f"{self.fickle} ")
        return self.error is not None and "divides by zero" in error.what

    @property
    def has_limit(self) -> bool:
        """Does the query take only some rows?"""
        return Operator.LIMIT in self.operators

    def explain_difference(self, collected: Counter[Row]) -> str:
        """How a result differs from the answer; empty if it is correct."""
        answer = self.answer()
        if self.has_limit:
            extra = collected - answer
            wanted = min(self.limit, answer.total())
            if extra or collected.total() != wanted:
                return f"{collected.total()} rows of {wanted}, not in the answer: {dict(extra)}"
            return ""
        if collected != answer:
            return f"missing {dict(answer - collected)}, too many {dict(collected - answer)}"
        return ""


def _rows(pieces: tuple[Slice, ...]) -> list[Row]:
    return [row for piece in pieces for row in (piece.body or ())]  # type: ignore[attr-defined]


def _matched(rows: list[Row], sides: Iterable[list[Row]]) -> list[Row]:
    """Join rows with one side input after the other; another order would give other rows."""
    for side in sides:
        rows = _matches(rows, side)
    return rows


def _matches(rows: Iterable[Row], others: list[Row]) -> list[Row]:
    return [_pair(k, v, w) for k, v in rows for j, w in others if j == k]


def _pair(key: int, one: int, other: int) -> Row:
    return key, (one * 31 + other) % _MODULUS


#: The most rows of one read; a reader continues with the rest of its split.
READ_ROWS = 4
#: Joins of joins grow fast: a query that handles more rows than this is drawn again.
ROWS_MAX = 150


def draw_workload(random: Random) -> ToyWorkload:
    """Draw a query: up to three tables, up to three operators over them, perhaps a limit."""
    while True:
        workload = _Draft(random).finish()
        if _rows_at_most(workload) <= ROWS_MAX:
            return workload


def _rows_at_most(workload: ToyWorkload) -> int:
    """An upper bound of the rows that all stages together output, from counts per key alone."""
    counts: list[Counter[int]] = []
    for stage, operator in enumerate(workload.operators):
        fed = [counts[link.producer] for link in workload.graph.links if link.consumer == stage]
        count = Counter(k for split in workload.tables.get(stage, ()) for k, _ in split)
        if operator is Operator.SCAN_JOIN:
            count = Counter({k: n * prod(side[k] for side in fed) for k, n in count.items()})
        elif operator is Operator.AT_LEAST:
            count = Counter({0: 1})
        elif operator in (Operator.JOIN, Operator.LOOKUP):
            count = Counter({k: n * prod(side[k] for side in fed[1:]) for k, n in fed[0].items()})
        elif operator is not Operator.SCAN_FILTERED:
            count = sum(fed, count)
        counts.append(count)
    return sum(count.total() for count in counts)


class _Draft:
    """A query under construction: the stages so far, and those without a consumer."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._stages: list[Stage] = []
        self._links: list[Link] = []
        self._operators: list[Operator] = []
        self._tables: dict[int, tuple[Rows, ...]] = {}
        self._open: list[int] = []
        for _ in range(random.choice((1, 1, 2, 2, 3))):
            self._add_reader()
        for _ in range(random.choice((1, 1, 1, 2, 2, 2, 3, 4))):
            self._add_operator()

    def _add(self, operator: Operator, kind: StageKind, channels: int, splits: int = 0) -> int:
        self._stages.append(Stage(kind, channels, splits))
        self._operators.append(operator)
        self._open.append(len(self._stages) - 1)
        return len(self._stages) - 1

    def _link(self, producer: int, consumer: int, **more: Any) -> None:
        self._links.append(Link(producer, consumer, **more))
        if producer in self._open:
            self._open.remove(producer)

    def _channels(self) -> int:
        return self._random.choice((1, 2, 2, 3))

    def _add_reader(self) -> None:
        random = self._random
        splits = random.choice((0, 1, 2, 3, 4, 5, 6))
        kind = random.random()
        before = self._open[-1] if self._open else None
        operator = Operator.SCAN
        if before is not None and kind < 0.35:
            operator = Operator.SCAN_JOIN
        elif before is not None and kind < 0.7:
            operator = Operator.SCAN_FILTERED
        stage = self._add(operator, StageKind.READ, self._channels(), splits)
        keys = random.choice((2, 5, 11))
        self._tables[stage] = tuple(
            tuple(
                (random.randrange(keys), random.randrange(100)) for _ in range(random.choice((0, 1, 2, 4, 6)))
            )
            for _ in range(splits)
        )
        if before is None or operator is Operator.SCAN:
            return
        broadcast = {"kind": LinkKind.SIDE, "routing": Routing.BROADCAST}
        others = [s for s in self._open if s not in (before, stage)]
        more = random.sample(others, min(len(others), random.choice((0, 1, 2))))
        if operator is Operator.SCAN_JOIN:
            self._link(before, stage, **broadcast)
            for other in more[:1]:
                self._link(other, stage, **broadcast)
        else:
            self._link(before, stage, required=False, **broadcast)
            self._open.insert(0, before)
            for other in more:
                self._link(other, stage, required=False, **broadcast)
                self._open.insert(0, other)
            self._add_join(before, stage)

    def _add_join(self, build: int, probe: int) -> None:
        stage = self._add(Operator.JOIN, StageKind.EXECUTE, self._channels())
        self._link(build, stage, phase=0)
        self._link(probe, stage, phase=1)

    def _add_operator(self) -> None:
        random = self._random
        source = random.choice(self._open)
        kind = random.choice(
            (
                Operator.MAP,
                Operator.DISTINCT,
                Operator.DISTINCT,
                Operator.SUM,
                Operator.JOIN,
                Operator.JOIN,
                Operator.LOOKUP,
                Operator.AT_LEAST,
            )
        )
        if kind is Operator.JOIN:
            self._add_join(source, random.choice([source, *self._open]))
            return
        if kind is Operator.LOOKUP:
            sides = random.sample(self._open, min(len(self._open), random.choice((1, 1, 2, 3))))
            stage = self._add(kind, StageKind.EXECUTE, self._channels())
            self._link(source, stage)
            for side in sides:
                self._link(side, stage, kind=LinkKind.SIDE, routing=Routing.BROADCAST)
            return
        channels = self._channels()
        passes = kind is Operator.MAP and random.random() < 0.5
        if passes:
            channels = self._stages[source].channels
        keep = random.random() < (0.7 if kind is Operator.AT_LEAST else 0.2)
        if kind is Operator.AT_LEAST:
            channels = 1
        stage = self._add(kind, StageKind.EXECUTE, channels)
        self._link(source, stage, routing=Routing.PASS_THROUGH if passes else Routing.HASH)
        if kind is not Operator.MAP and len(self._open) > 1 and random.random() < 0.4:
            self._link(next(s for s in self._open if s != stage), stage)
        if keep:
            self._open.insert(0, source)

    def finish(self) -> ToyWorkload:
        """Add a limit, perhaps, and the collector."""
        if self._random.random() < 0.3:
            if self._random.random() < 0.5:
                self._gather(self._add(Operator.LIMIT, StageKind.EXECUTE, self._channels()))
            self._gather(self._add(Operator.LIMIT, StageKind.EXECUTE, 1))
        self._gather(self._add(Operator.COLLECT, StageKind.COLLECT, 1))
        graph = StageGraph(tuple(self._stages), tuple(self._links))
        return ToyWorkload(graph, tuple(self._operators), self._tables, limit=self._random.choice((1, 3, 8)))

    def _gather(self, consumer: int) -> None:
        for stage in [stage for stage in self._open if stage != consumer]:
            self._link(stage, consumer)
