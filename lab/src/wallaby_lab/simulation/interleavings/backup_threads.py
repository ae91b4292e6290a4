"""Threads at one backup: keep, read, release and drop concurrently, with hardly any memory and little disk.

Whatever is kept and not released reads back unchanged, batch by batch, from memory or disk. If two runs of a channel
keep an output under one name, the output of the later run stays, whichever is stored last. Everything is counted
exactly once; and when everything is dropped, nothing is left.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import pyarrow as pa

from wallaby.exchange.backup import Backup
from wallaby.exchange.body import Body
from wallaby.exchange.lazy_body import GoneError, fetched
from wallaby.exchange.memory import ByteBudget
from wallaby.lineage.names import Edge, QueryId, TaskName
from wallaby_lab.simulation.interleavings.planning import ThreadPlan
from wallaby_lab.simulation.interleavings.scheduler import Scheduler

EDGES = tuple(Edge(0, 0, consumer) for consumer in range(3))
PLENTY_BYTES = 1 << 30
#: The epoch of the channel runs that make most outputs, and those of runs before and after.
RUN, EARLIER, LATER = 2, 1, 3
#: The thread that keeps outputs.
KEEP = "keep"


class WrongError(Exception):
    """A required condition does not hold."""


def require(holds: bool, what: str) -> None:
    """Fail if a condition does not hold."""
    if not holds:
        raise WrongError(what)


def drawn_output(random: Random, number: int) -> dict[Edge, Body]:
    """Draw a unique output: with separate bodies, one for all edges, or none."""

    def body(at: int) -> Body:
        if random.random() < 0.2:
            return None
        rows = [
            [number * 100 + at * 10 + n] * random.choice((1, 20)) for n in range(random.choice((1, 2, 3)))
        ]
        return tuple(pa.record_batch([pa.array(part, pa.int64())], ["v"]) for part in rows)

    if random.random() < 0.3:
        shared = body(0)
        return dict.fromkeys(EDGES, shared)
    return {edge: body(at) for at, edge in enumerate(EDGES)}


def said(body: object) -> object:
    """A body as comparable values, including batch boundaries."""
    return [batch.column(0).to_pylist() for batch in body] if body else None  # type: ignore[attr-defined]


class BackupThreads:
    """One backup, what was put into it, and what should be read from it."""

    def __init__(self, scheduler: Scheduler, random: Random, backup: Backup, disk_is_small: bool) -> None:
        self._scheduler = scheduler
        self._random = random
        self._backup = backup
        self._disk_is_small = disk_is_small
        #: What each run makes, and the latest run of which an output is known to be kept.
        self._made: dict[tuple[QueryId, TaskName], dict[int, dict[Edge, Body]]] = {}
        self._latest: dict[tuple[QueryId, TaskName], int] = {}
        self._kept: list[tuple[QueryId, TaskName]] = []
        self._gone: set[tuple[QueryId, TaskName]] = set()
        self._dropped: set[QueryId] = set()
        self._busy = self._keeping = 0

    def run(self) -> None:
        """Draw actions, run them in some order, and check the final state."""
        random, spawn = self._random, self._scheduler.spawn
        queries = [QueryId("q1"), QueryId("q2")]
        jobs: list[tuple[str, Callable[[], object]]] = []
        for channel in range(2):
            query = queries[random.random() < 0.6]
            tasks = [TaskName(0, channel, seq) for seq in range(random.choice((2, 4)))]
            for task in tasks:
                self._made[query, task] = {
                    run: drawn_output(random, 100 * run + channel * 10 + task.seq)
                    for run in (EARLIER, RUN, LATER)
                }
            jobs.append((f"keep {channel}", partial(self._keep, query, tasks)))
            if random.random() < 0.5:
                again = random.choice((EARLIER, RUN, LATER))
                jobs.append((f"keep again {channel}", partial(self._keep, query, tasks, again)))
        for reader in range(2):
            rounds = [random.getrandbits(32) for _ in range(4)]
            jobs.append((f"read {reader}", partial(self._read_often, rounds)))
        if random.random() < 0.4:
            jobs.append(("let go", self._let_go))
        if random.random() < 0.5:
            jobs.append(("drop", lambda: self._drop(queries[1])))
        self._busy, self._keeping = len(jobs), sum(name.startswith("keep") for name, _ in jobs)
        for name, job in jobs:
            spawn(name, partial(self._do, name, job))
        self._scheduler.run(lambda: not self._busy)
        self._check_end(queries)

    def run_two(self, other: str, *, other_first: bool) -> None:
        """Fill the memory with two outputs; then one thread keeps two more, and another does something else."""
        query = QueryId("q1")
        tasks = [TaskName(0, 0, seq) for seq in range(4)]
        for task in tasks:
            values = pa.array([task.seq] * 6, pa.int64())
            self._made[query, task] = {RUN: dict.fromkeys(EDGES, (pa.record_batch([values], ["v"]),))}
        self._keep(query, tasks[:2])

        def read() -> None:
            for kept in list(self._kept):
                body, _, size = self._backup.slice_of(*kept, EDGES[0])
                self._check(*kept, EDGES[0], body, size)

        others: dict[str, Callable[[], object]] = {
            "read": read,
            "drop": lambda: self._drop(query),
            "let go": self._let_go,
            "keep again": lambda: self._keep(query, tasks),
        }
        jobs: list[tuple[str, Callable[[], object]]] = [
            (KEEP, lambda: self._keep(query, tasks[2:])),
            (other, others[other]),
        ]
        self._busy = 2
        for name, job in reversed(jobs) if other_first else jobs:
            self._scheduler.spawn(name, partial(self._do, name, job))
        self._scheduler.run(lambda: not self._busy)
        self._check_end([query])

    def _do(self, name: str, job: Callable[[], object]) -> None:
        job()
        self._busy -= 1
        self._keeping -= name.startswith("keep")

    def _keep(self, query: QueryId, tasks: list[TaskName], run: int = RUN) -> None:
        for task in tasks:
            output = self._made[query, task][run]
            final = task == tasks[-1]
            kept = self._backup.keep_in_memory(
                query, task, output, final=final, since_epoch=run
            ) or self._backup.keep(query, task, output, final=final, since_epoch=run)
            require(kept or self._disk_is_small, f"{task} found no room, and there is some")
            if kept and query not in self._dropped:
                self._kept.append((query, task))
                self._latest[query, task] = max(run, self._latest.get((query, task), run))

    def _read_often(self, seeds: list[int]) -> None:
        for seed in seeds:
            self._read(Random(seed))

    def _read(self, random: Random) -> None:
        """Read some kept outputs as for a push, which may return only the first of them."""
        self._scheduler.wait(lambda: bool(self._kept) or not self._keeping)
        if not self._kept:
            return
        chosen = random.sample(self._kept, min(len(self._kept), random.choice((1, 2, 3))))
        query = chosen[0][0]
        items = [(edge, task) for q, task in chosen if q == query for edge in random.sample(EDGES, 2)]
        limit = random.choice((None, 1, 100, 500))
        latest = {task: self._latest[query, task] for _, task in items}
        try:
            slices = self._backup.slices_of(query, items, limit)
            read = fetched(slices)
        except GoneError:
            over = query in self._dropped or any((query, task) in self._gone for _, task in items)
            require(over, f"{items} of {query} is said to be gone, and nobody let it go")
            return
        require(bool(slices), "a push of nothing")
        require([(p.edge, p.task) for p in read] == items[: len(read)], "slices come in another order")
        require(limit is not None or len(read) == len(items), "a push without limit is cut")
        sizes = {id(p.body): p.size_bytes for p in slices if p.body is not None}
        require(limit is None or len(sizes) <= 1 or sum(sizes.values()) <= limit, "a push is over its limit")
        for piece in read:
            # What was let go may be kept once more by an earlier run, which is late.
            since = EARLIER if (query, piece.task) in self._gone else latest[piece.task]
            self._check(query, piece.task, piece.edge, piece.body, piece.size_bytes, since)

    def _check(
        self, query: QueryId, task: TaskName, edge: Edge, body: object, size: int, since: int = EARLIER
    ) -> None:
        """Check that a slice was made by this run or a later one."""
        made = [output[edge] for run, output in self._made[query, task].items() if run >= since]
        expected = [(said(each), sum(batch.nbytes for batch in each or ())) for each in made]
        require(
            (said(body), size) in expected, f"{task} over {edge} reads as {said(body)}, not one of {expected}"
        )

    def _let_go(self) -> None:
        for query, task in list(self._kept)[:1]:
            self._gone.add((query, task))
            self._backup.release(query, [task])

    def _drop(self, query: QueryId) -> None:
        kept = self._random.choice((0, 0, 2))
        self._scheduler.wait(lambda: len(self._kept) >= kept or not self._keeping)
        self._dropped.add(query)
        self._backup.drop(query)

    def _check_end(self, queries: list[QueryId]) -> None:
        backup = self._backup
        for query, task in self._kept:
            if query not in self._dropped and (query, task) not in self._gone:
                require(backup.has(query, task), f"{task} was kept, and is not there")
                for edge in EDGES:
                    body, _, size = backup.slice_of(query, task, edge)
                    self._check(query, task, edge, body, size, self._latest[query, task])
        for query in self._dropped:
            require(
                not any(backup.has(query, task) for q, task in self._kept if q == query), "kept when dropped"
            )
            require(backup.disk_bytes_of(query) == 0, "a dropped query still counts on disk")
        on_disk = sum(backup.disk_bytes_of(query) for query in queries)
        require(
            on_disk == backup.bytes_on_disk, f"{backup.bytes_on_disk} bytes on disk, and {on_disk} written"
        )
        for query in queries:
            backup.drop(query)
        require(
            (backup.bytes_in_memory, backup.bytes_on_disk) == (0, 0), "bytes are left when all is dropped"
        )


def run_preempted(scheduler: Scheduler, others: str, plan: ThreadPlan) -> None:
    """Keep outputs while another action runs, under a plan; a plan without a stop is recorded."""
    folder = Path(tempfile.mkdtemp(prefix="wallaby-backup-"))
    scheduler.keep_order(record=plan.stop is None)
    second = others if plan.first == KEEP else KEEP
    for name, line in ((plan.first, plan.stop), (second, plan.other_stop)):
        if line is not None:
            scheduler.preempt(name, line)
    try:
        budget = ByteBudget(100)
        backup = Backup(budget, [folder], PLENTY_BYTES, owner="w", segment_bytes=1 << 20)
        threads = BackupThreads(scheduler, Random(0), backup, disk_is_small=False)
        threads.run_two(others, other_first=plan.first == others)
        require(budget.used_bytes == 0, "the budget was not given back")
        backup.close()
        require(not any(folder.iterdir()), "files are left")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_backup_threads(scheduler: Scheduler, random: Random) -> None:
    """Run one seed; raises if anything is wrong."""
    folder = Path(tempfile.mkdtemp(prefix="wallaby-backup-"))
    try:
        disk_is_small = random.random() < 0.2
        disk = random.choice((0, 700, 2_000)) if disk_is_small else PLENTY_BYTES
        budget = ByteBudget(random.choice((0, 60, 400, 2_000)))
        before = budget.limit_bytes
        backup = Backup(budget, [folder], disk, owner="w", segment_bytes=random.choice((1, 1_500, 1 << 20)))
        BackupThreads(scheduler, random, backup, disk_is_small).run()
        require(budget.used_bytes == 0 and budget.limit_bytes == before, "the budget was not given back")
        require(backup.bytes_in_memory <= before, "more in memory than the budget")
        backup.close()
        require(not any(folder.iterdir()), "files are left")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
