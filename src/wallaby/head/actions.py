"""The coordinator's effects that are one action of the store each, and how they fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from wallaby.coordinator import effects as coordinating
from wallaby.coordinator.effects import SnapshotReply
from wallaby.errors import GcsLostError, GcsUnavailableError, WallabyError
from wallaby.faults.injection import Failures, no_answer, refusal
from wallaby.gcs.interface import Gcs


def _expel(gcs: Gcs, effect: coordinating.Expel) -> bool:
    gcs.expel(effect.worker)
    return True


def _snapshot(gcs: Gcs, effect: coordinating.TakeSnapshot) -> SnapshotReply:
    # The gate is closed: no record is committed between the two.
    found = gcs.snapshot(effect.query)
    return SnapshotReply(found, gcs.history(effect.query) if effect.with_records else {})


def _submit(gcs: Gcs, effect: coordinating.Submit) -> Any:
    try:
        return gcs.submit(effect.query, effect.graph, effect.hosts, effect.payload)
    except (GcsUnavailableError, GcsLostError):
        raise
    except WallabyError as error:
        return error  # it is thrown into the generator that asked


def _ask_to_drain(gcs: Gcs, effect: coordinating.AskToDrain) -> bool:
    gcs.ask_to_drain(effect.worker)
    return True


def _is_needed(gcs: Gcs, effect: coordinating.ReadNeed) -> bool:
    found = [gcs.status(query) for query in gcs.queries()]
    return any(effect.worker in (*status.members, *status.draining) for status in found)


ACTIONS: Final[Mapping[type, Callable[[Gcs, Any], Any]]] = {
    coordinating.Expel: _expel,
    coordinating.ReadStatus: lambda gcs, effect: gcs.status(effect.query),
    coordinating.AddMember: lambda gcs, effect: gcs.join(effect.query, effect.worker),
    coordinating.Freeze: lambda gcs, effect: gcs.freeze(effect.query, effect.lost, effect.draining),
    coordinating.TakeSnapshot: _snapshot,
    coordinating.Submit: _submit,
    coordinating.AskToDrain: _ask_to_drain,
    coordinating.ReadNeed: _is_needed,
}

#: How the coordinator's effects fail when a fault is ordered.
COORDINATORS_FAILURES: Failures = {
    coordinating.Watch: no_answer,
    coordinating.Expel: no_answer,
    coordinating.ReadStatus: no_answer,
    coordinating.AddMember: no_answer,
    coordinating.Freeze: no_answer,
    coordinating.TakeSnapshot: no_answer,
    coordinating.Resume: no_answer,
    coordinating.Remove: no_answer,
    coordinating.Submit: no_answer,
    coordinating.AskToDrain: no_answer,
    coordinating.ReadNeed: no_answer,
    coordinating.Ping: refusal,
    coordinating.Inquire: no_answer,
}
