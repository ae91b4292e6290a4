"""Which modules the interleavings run with their own threads. Importing this list imports none of them."""

from __future__ import annotations

#: The modules whose threads, locks and queues are the scheduler's.
INTERLEAVED = (
    "wallaby.worker.loop",
    "wallaby.worker.node",
    "wallaby.worker.pools",
    "wallaby.worker.perform",
    "wallaby.worker.pushing",
    "wallaby.exchange.backup",
    "wallaby.exchange.segment",
    "wallaby.exchange.shelf",
    "wallaby.exchange.memory",
    "wallaby.exchange.assembly",
    "wallaby.exchange.client",
    "wallaby.exchange.server",
    "wallaby.exchange.wire",
    "wallaby.exchange.body",
)
