"""What happens to a query if the disk of its worker is full while kept results are on that worker.

Usually the worker leaves, and others, which may have room, take its work. Kept results would be lost with it, and would
be made again, perhaps on the same disk, until all workers are gone. So the query ends instead, and the results stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wallaby.errors import KeptResultError
from wallaby.lineage.names import TaskName, WorkerId


def no_room_beside_results(worker: WorkerId, task: TaskName, directories: Sequence[Path]) -> KeptResultError:
    """The error that ends the query."""
    where = ", ".join(map(str, directories)) or "its local directory"
    return KeptResultError(
        f"{worker} has no room for {task}: the disk of {where} is full, and results are kept there.",
        fix="Release results that are no longer needed with unpersist(), free space on that disk, or name a larger one "
        "with spark.wallaby.localDirectory.",
    )
