"""The modules that interleavings run with scheduled threads. Importing this list imports none of them."""

from __future__ import annotations

#: The modules whose threads, locks and queues the scheduler controls.
INTERLEAVED = (
    "wallaby.node.loop",
    "wallaby.node.node",
    "wallaby.node.driving",
    "wallaby.node.pools",
    "wallaby.node.perform",
    "wallaby.node.pushing",
    "wallaby.exchange.backup",
    "wallaby.exchange.segment",
    "wallaby.exchange.lazy_body",
    "wallaby.exchange.memory",
    "wallaby.exchange.assembly",
    "wallaby.exchange.client",
    "wallaby.exchange.incoming",
    "wallaby.exchange.wire",
    "wallaby.exchange.body",
)
