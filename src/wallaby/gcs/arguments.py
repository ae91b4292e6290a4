"""Prepare the larger arguments of the Redis scripts.

Pure functions; the scripts only have to store their arguments, or to refuse.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from wallaby.gcs.encoding import encode_channel, encode_state, to_bytes
from wallaby.lineage.graph import Routing, StageGraph
from wallaby.lineage.names import ChannelName, WorkerId
from wallaby.lineage.snapshot import ChannelState, RecoveryPlan

ScriptArgument = bytes | str | int


def flat(rows: Iterable[tuple[ScriptArgument, ...]]) -> list[ScriptArgument]:
    """Flatten rows into one list, as a script expects them."""
    return [value for row in rows for value in row]


def sized(values: list[ScriptArgument]) -> list[ScriptArgument]:
    """A list preceded by its length."""
    return [len(values), *values]


def claim_name(worker: WorkerId, slot: int) -> bytes:
    """`slot worker`."""
    return b"%d %s" % (slot, to_bytes(worker))


def first_states(
    graph: StageGraph, hosts: Mapping[ChannelName, WorkerId]
) -> tuple[list[tuple[ScriptArgument, ...]], list[tuple[ScriptArgument, ...]]]:
    """Every channel's first state, readers with their first splits; and for each reader stage the next split."""
    taken = {number: 0 for number in range(len(graph.stages)) if graph.is_reader(number)}
    channels: list[tuple[ScriptArgument, ...]] = []
    for name in graph.channels:
        split = None
        if name.stage in taken and taken[name.stage] < graph.stages[name.stage].splits:
            split = taken[name.stage]
            taken[name.stage] += 1
        channels.append((encode_channel(name), encode_state(ChannelState(hosts[name], split=split))))
    return channels, [(stage, f"{after} {graph.stages[stage].splits}") for stage, after in taken.items()]


def link_values(graph: StageGraph) -> list[tuple[ScriptArgument, ...]]:
    """Every link as `producer consumers passes`: the stage of its producers, the number of consumers, the routing."""
    values: list[tuple[ScriptArgument, ...]] = []
    for number, link in enumerate(graph.links):
        consumers, passes = graph.stages[link.consumer].channels, link.routing is Routing.PASS_THROUGH
        values.append((number, f"{link.producer} {consumers} {passes:d}"))
    return values


def channel_changes(plan: RecoveryPlan) -> list[tuple[ScriptArgument, ...]]:
    """Every channel that a plan changes: name, host, base, losses, closed; empty or 0 for what stays."""
    names = dict.fromkeys((*plan.hosts, *plan.bases, *plan.losses, *plan.closed))
    closed = frozenset(plan.closed)
    return [
        (
            encode_channel(name),
            to_bytes(plan.hosts.get(name, "")),
            plan.bases.get(name, ""),
            plan.losses.get(name, ""),
            int(name in closed),
        )
        for name in names
    ]
