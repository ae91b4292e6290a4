"""Effects as short lines of a story."""

from __future__ import annotations

from typing import Any

from wallaby.coordinator import effects as coordinating
from wallaby.lineage import effects as protocol
from wallaby.node import effects as working


def brief(effect: Any) -> str:
    """An effect as one short line of a story."""
    match effect:
        case protocol.Execute():
            what = f"split {effect.split}" if effect.split is not None else effect.draw or "nothing"
            return f"{effect.point.value} {effect.task} on {what}" + (
                f" with sides {sorted(effect.sides)}" if effect.sides else ""
            )
        case protocol.BackUp():
            return f"{effect.point.value} {effect.task}"
        case protocol.CommitTask():
            return f"commit {effect.task} in epoch {effect.epoch}" + (" (final)" if effect.final else "")
        case protocol.Push():
            items = " ".join(f"{task} over {edge}," for edge, task in effect.items)
            return f"{effect.point.value} to {effect.target} in epoch {effect.epoch}: {items[:-1]}"
        case coordinating.Resume():
            plan = effect.plan
            moves = " ".join(f"{name}->{host}" for name, host in sorted(plan.hosts.items()))
            return (
                f"resume: {moves or 'nothing moves'}; re-reads: {'; '.join(map(str, plan.rereads)) or 'none'}"
            )
        case coordinating.Freeze():
            return f"freeze, lost {' '.join(effect.lost) or 'nobody'}, draining {' '.join(effect.draining) or 'nobody'}"
        case working.Spawn():
            return f"begin {effect.name}"
        case protocol.Collect():
            return "collect " + " ".join(str(piece.task) for piece in effect.slices)
        case _:
            return str(effect)
