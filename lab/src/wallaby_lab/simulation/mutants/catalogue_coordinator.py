"""Mutants of the coordinator: recoveries left half done, and ends that leave something behind."""

from __future__ import annotations

from wallaby_lab.simulation.mutants.mutant import Mutant

MODULE = "wallaby.coordinator.coordinator"

COORDINATOR: tuple[Mutant, ...] = (
    Mutant(
        name="closed-gate-left-closed",
        what="a coordinator that finds a closed gate, and nobody newly lost, thinks that all is well",
        breaks=("7", "H6", "6.1.9"),
        module=MODULE,
        before="        if lost or leaving or not status.gate_open:\n",
        after="        if lost or leaving:\n",
    ),
    Mutant(
        name="no-workers-no-patience",
        what="a query that has lost all its workers is reconciled at once, with nobody to host it",
        breaks=("7", "H10"),
        module=MODULE,
        before="            if not snapshot.members:\n                return\n",
        after="",
    ),
    Mutant(
        name="no-workers-for-ever",
        what="a query that has no worker waits beyond its limit",
        breaks=("7", "H10"),
        module=MODULE,
        before="        if not snapshot.members and frozen_ms > self._settings.no_workers_ms:\n",
        after="        if not snapshot.members and frozen_ms > self._settings.no_workers_ms * 1000:\n",
    ),
    Mutant(
        name="poison-never-found",
        what="no number of lost workers is too many for one task",
        breaks=("7", "H11"),
        module=MODULE,
        before="            if worst is not None and plan.losses[worst] >= self._settings.task_worker_losses_max:\n",
        after="            if worst is not None and plan.losses[worst] < 0:\n",
    ),
    Mutant(
        name="too-large-never-found",
        what="a query may cost any number of workers their memory",
        breaks=("7",),
        module=MODULE,
        before="            if len(snapshot.lost_strained) >= self._settings.strained_losses_max:\n",
        after="            if not snapshot.version:\n",
    ),
    Mutant(
        name="too-large-at-the-first-loss",
        what="a query ends with the first worker that it costs",
        breaks=("7",),
        module=MODULE,
        before="            if len(snapshot.lost_strained) >= self._settings.strained_losses_max:\n",
        after="            if snapshot.lost_strained:\n",
    ),
    Mutant(
        name="expelled-but-not-recovered",
        what="a worker is expelled, and the queries that it served go on as if it were there",
        breaks=("7", "6.1.10"),
        module=MODULE,
        before="        lost = tuple(worker for worker in (*status.members, *status.draining) if worker not in live)\n",
        after="        lost = tuple(worker for worker in status.draining if worker not in live)\n",
    ),
    Mutant(
        name="removal-not-repeated",
        what="a query is taken as removed although the store never answered",
        breaks=("10",),
        module=MODULE,
        before="        if (yield from ask(Remove(query.id, barred=query.doubtful))) is not None:\n"
        "            query.advance(QueryPhase.ENDED)\n",
        after="        yield Remove(query.id, barred=query.doubtful)\n        query.advance(QueryPhase.ENDED)\n",
    ),
    Mutant(
        name="failed-query-not-removed",
        what="the keys of a query that failed or was cancelled stay",
        breaks=("10",),
        module=MODULE,
        before="        if (yield from ask(Remove(query.id, barred=query.doubtful))) is not None:\n",
        after="        if error is not None or (yield from ask(Remove(query.id, barred=query.doubtful))) is not "
        "None:\n",
    ),
    Mutant(
        name="loss-of-the-store-survived",
        what="a coordinator that loses its store ends its queries without an error",
        breaks=("7", "H8"),
        module=MODULE,
        before="                    query.end(lost, QueryPhase.ENDED)\n",
        after="                    query.advance(QueryPhase.ENDED)\n",
    ),
    Mutant(
        name="end-changed-by-a-lost-reply",
        what="an end whose removal was not answered is decided anew, from a store that has forgotten the query",
        breaks=("7", "H5"),
        module=MODULE,
        before="        if query.phase is QueryPhase.ENDING:\n"
        "            yield from self._end(query, query.error)\n        elif status",
        after="        if status",
    ),
    Mutant(
        name="members-never-joined",
        what="a worker that comes after the query was submitted never becomes a member",
        breaks=("7", "H10", "H13"),
        module=MODULE,
        before="            if worker not in known and not lease.draining:\n",
        after="            if worker not in known and lease.draining:\n",
    ),
)
