"""Divide a kept result among Spark's tasks: in order, by bytes, and each output in exactly one task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wallaby.above.reader import KeptPartition
from wallaby.lineage.kept import KeptRange
from wallaby.results.kept import KeptOutput

#: The bytes that a task reads if there are enough; fewer if slots would otherwise be idle.
TASK_BYTES: Final = 64 << 20
TASK_BYTES_MIN: Final = 1 << 20


def divided(outputs: Sequence[KeptOutput], slots: int, *, no_more: bool = False) -> tuple[KeptPartition, ...]:
    """Divide a result into partitions, at least one; concatenated, they are the result.

    With `no_more` there are at most as many partitions as slots. Where TaskManagers take slots too, this leaves the
    slot of a lost TaskManager to its successor. Otherwise a task could take that slot and wait for rows that only the
    successor can make again.
    """
    total_bytes = sum(output.size_bytes for output in outputs)
    most = slots if no_more else max(len(outputs), 1)
    wanted = max(-(-total_bytes // TASK_BYTES), min(slots, -(-total_bytes // TASK_BYTES_MIN)), 1)
    wanted = min(wanted, most)
    share = total_bytes / wanted
    groups: list[list[KeptRange]] = [[]]
    before_bytes = 0
    for output in outputs:
        if groups[-1] and before_bytes >= share * len(groups) and len(groups) < wanted:
            groups.append([])
        groups[-1].append(output.range)
        before_bytes += output.size_bytes
    return tuple(KeptPartition(_joined(group)) for group in groups)


def _joined(ranges: Sequence[KeptRange]) -> tuple[KeptRange, ...]:
    """Merge ranges of outputs that follow each other."""
    found: list[KeptRange] = []
    for each in ranges:
        last = found[-1] if found else None
        if last is not None and (last.channel, last.edge, last.end) == (each.channel, each.edge, each.first):
            found[-1] = KeptRange(each.channel, each.edge, last.first, each.end)
        else:
            found.append(each)
    return tuple(found)
