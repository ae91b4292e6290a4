"""Check every repair of a run against an independent calculation.

The engine's inspection shows the coordinator's effects: the snapshots that it took, and the plans that the store
applied to them. `check_smallest` computes from below, as a fixpoint of sets, which channels the loss forces to be
rewound or moved and what must be read again (invariant 8). A plan that differs is a bug, even if the answer is right.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from wallaby.coordinator import effects as coordinating
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.names import ChannelName, QueryId
from wallaby.lineage.recoverable import recoverable
from wallaby.lineage.snapshot import RecoveryPlan, Snapshot
from wallaby.lineage.tolerance import LINEAGE, Tolerance
from wallaby.lineage.verdict import Verdict
from wallaby_lab.invariants.audit import InvariantViolation, check_smallest

Records = Mapping[ChannelName, tuple[bytes, ...]]


class Repairs:
    """The coordinator's repairs since the last check. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._snapshots: dict[tuple[QueryId, int], tuple[Snapshot, Records]] = {}
        self._applied: list[tuple[QueryId, int, RecoveryPlan]] = []

    def noticed(self, effect: Any, answer: Any) -> None:
        """The store has answered an effect of the coordinator."""
        with self._lock:
            match effect:
                case coordinating.TakeSnapshot(query=query) if (
                    answer is not None and answer.snapshot is not None
                ):
                    self._snapshots[query, answer.snapshot.version] = (answer.snapshot, answer.records)
                case coordinating.Resume(query=query, plan=plan, version=version) if answer is Verdict.DONE:
                    self._applied.append((query, version, plan))
                case _:
                    pass

    def check(self, query: QueryId, graph: StageGraph, tolerance: Tolerance = LINEAGE) -> tuple[int, str]:
        """Check the plans of a query; returns their number, and how the first wrong one differs.

        The store applies a plan only to the version that it was made from, so every plan has its snapshot.
        """
        with self._lock:
            applied = [(version, plan) for of, version, plan in self._applied if of == query]
            snapshots = dict(self._snapshots)
            self._applied, self._snapshots = [], {}
        for version, plan in applied:
            snapshot, records = snapshots[query, version]
            try:
                check_smallest(graph, snapshot, plan, recoverable(tolerance, records))
            except InvariantViolation as violation:
                return len(applied), str(violation)
        return len(applied), ""
