"""The start of a query: its name, and the placement of its channels."""

from __future__ import annotations

import uuid

from wallaby.coordinator.query import Query
from wallaby.lineage.names import HEAD, ChannelName, QueryId, WorkerId
from wallaby.node.payload import QueryPayload
from wallaby.plan.physical import PhysicalPlan


def new_query(plan: PhysicalPlan, payload: QueryPayload) -> Query:
    """A query with a new, unique name."""
    return Query(QueryId(f"q-{uuid.uuid4().hex[:12]}"), plan.graph, tolerance=payload.tolerance)


def place(plan: PhysicalPlan, members: list[WorkerId]) -> dict[ChannelName, WorkerId]:
    """Distribute the channels of each stage over the workers in turn; the collector goes to the head."""
    hosts = {name: members[name.channel % len(members)] for name in plan.graph.channels}
    return {**hosts, plan.graph.collector: HEAD}
