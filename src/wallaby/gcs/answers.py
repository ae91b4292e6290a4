"""Turn the replies of the Redis scripts into the types of the interface.

Hashes in Redis have no order. Whatever is ordered in the interface is sorted here, by the number that a worker got when
it joined and by the stage graph, so that every client sees the same order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wallaby.gcs.encoding import (
    decode_channel,
    decode_edge,
    decode_graph,
    decode_reread,
    decode_state,
    pairs,
    to_text,
)
from wallaby.gcs.interface import WorkerLease
from wallaby.lineage.names import ChannelName, Edge, WorkerId
from wallaby.lineage.snapshot import ChannelState, ReRead

#: Fields of a query's hash with this prefix name a worker that is short of memory because of the query.
STRAINED = b"strained "


@dataclass(frozen=True, slots=True)
class StoredState:
    """All that the store holds of a query, as `snapshot.lua` returns it."""

    epoch: int
    gate_open: bool
    version: int
    commits: int
    error: str
    #: In the order of joining, with whether they are draining.
    members: dict[WorkerId, bool]
    departed: dict[WorkerId, bool]
    strained: tuple[WorkerId, ...]
    lost_strained: tuple[WorkerId, ...]
    channels: dict[ChannelName, ChannelState]
    delivered: dict[Edge, int]
    rereads: tuple[ReRead, ...]
    claims: dict[tuple[WorkerId, int], ReRead]
    next_split: dict[int, int]
    #: Empty unless asked for.
    records: dict[ChannelName, tuple[bytes, ...]]

    @staticmethod
    def of(answer: Sequence[Any]) -> StoredState:
        """Parse the answer of `snapshot.lua`, after its verdict."""
        query, members, departed, channels, delivered, rereads, claims, splits, records = answer
        fields = dict(pairs(query))
        graph = decode_graph(fields[b"graph"])
        counts = {decode_edge(edge): int(count) for edge, count in pairs(delivered)}
        return StoredState(
            epoch=int(fields[b"epoch"]),
            gate_open=fields[b"gate"] == b"1",
            version=int(fields[b"version"]),
            commits=int(fields[b"commits"]),
            error=to_text(fields[b"error"]),
            members=members_of(members),
            departed={WorkerId(to_text(worker)): flag == b"1" for worker, flag in pairs(departed)},
            strained=tuple(
                sorted(
                    WorkerId(to_text(name[len(STRAINED) :])) for name in fields if name.startswith(STRAINED)
                )
            ),
            lost_strained=tuple(
                sorted(WorkerId(to_text(worker)) for worker, flag in pairs(departed) if flag == b"2")
            ),
            channels=channels_of(channels),
            delivered={
                edge: counts.get(edge, 0) for name in graph.channels for edge in graph.edges_from(name)
            },
            rereads=tuple(map(decode_reread, rereads)),
            claims={_claim_key(name): decode_reread(reread) for name, reread in pairs(claims)},
            next_split={int(stage): int(text.split(b" ")[0]) for stage, text in pairs(splits)},
            records={decode_channel(name): tuple(found) for name, found in pairs(records)},
        )


def members_of(flat: Sequence[bytes]) -> dict[WorkerId, bool]:
    """A query's members in the order of joining, with whether they are draining."""
    found = []
    for worker, text in pairs(flat):
        order, draining = text.split(b" ")
        found.append((int(order), WorkerId(to_text(worker)), draining == b"1"))
    return {worker: draining for _, worker, draining in sorted(found)}


def by_draining(members: Mapping[WorkerId, bool]) -> tuple[tuple[WorkerId, ...], tuple[WorkerId, ...]]:
    """The members that stay, and those that drain."""
    return (
        tuple(worker for worker, draining in members.items() if not draining),
        tuple(worker for worker, draining in members.items() if draining),
    )


def channels_of(flat: Sequence[bytes]) -> dict[ChannelName, ChannelState]:
    """Every channel's state, in the order of stages and channels."""
    return dict(sorted((decode_channel(name), decode_state(state)) for name, state in pairs(flat)))


def leases_of(answer: Sequence[Any]) -> tuple[WorkerLease, ...]:
    """Every worker, from the answer of `workers.lua`, in the order of registration."""
    (seconds, microseconds), workers, leases, complaints = answer
    now_ms = int(seconds) * 1000 + int(microseconds) // 1000
    ends_ms = {worker: int(end) for worker, end in pairs(leases)}
    against = _complaints_of(complaints, now_ms)
    found = []
    for worker, text in pairs(workers):
        order, draining, address = text.split(b" ", 2)
        lease = WorkerLease(
            WorkerId(to_text(worker)),
            to_text(address),
            ends_ms[worker] - now_ms,
            draining == b"1",
            tuple(sorted(against.get(worker, {}).items())),
        )
        found.append((int(order), lease))
    return tuple(lease for _, lease in sorted(found, key=lambda each: each[0]))


def _complaints_of(flat: Sequence[bytes], now_ms: int) -> dict[bytes, dict[WorkerId, int]]:
    """For each accused worker, who complains and for how long, over all queries; `complain.lua` has the names."""
    against: dict[bytes, dict[WorkerId, int]] = {}
    for complaint, text in pairs(flat):
        first, second, names = complaint.split(b" ", 2)
        accused, reporter = names[: int(first)], names[int(first) : int(first) + int(second)]
        since_ms, latest_ms, ends_ms = map(int, text.split(b" "))
        if ends_ms >= now_ms:
            found = against.setdefault(accused, {})
            who = WorkerId(to_text(reporter))
            found[who] = max(latest_ms - since_ms, found.get(who, 0))
    return against


def _claim_key(name: bytes) -> tuple[WorkerId, int]:
    slot, worker = name.split(b" ", 1)
    return WorkerId(to_text(worker)), int(slot)
