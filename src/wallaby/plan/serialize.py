"""Encode physical plans as bytes for the workers: versioned JSON, never pickle.

The form is `{"format": "wallaby-plan", "version": 9, "table": […], "plan": {…}}`; `codec` says how records
are written. Any change of the plan's classes changes what is written: raise `VERSION` then, and the golden
file under `tests/plan/fixtures` with it. All workers of a query run the driver's version, so no older version
is ever read.
"""

from __future__ import annotations

import json
from decimal import InvalidOperation
from typing import Final

from wallaby.errors import EncodingError, InvalidArgumentError
from wallaby.plan.physical import PhysicalPlan
from wallaby.relations.codec import Codec
from wallaby.relations.expression import Column
from wallaby.relations.relation import DataFile
from wallaby.relations.types import DataType

FORMAT: Final = "wallaby-plan"
VERSION: Final = 9
_SHARED: Final = (DataType, Column, DataFile)


def to_bytes(plan: PhysicalPlan) -> bytes:
    """Encode a plan; the same plan always gives the same bytes."""
    codec = Codec(_SHARED)
    written = codec.write(plan, PhysicalPlan)
    whole = {"format": FORMAT, "version": VERSION, "table": codec.table, "plan": written}
    return json.dumps(whole, separators=(",", ":"), allow_nan=False).encode("ascii")


def from_bytes(data: bytes) -> PhysicalPlan:
    """Decode a plan; `EncodingError` if the bytes are malformed."""
    try:
        return _read(json.loads(data))
    except EncodingError:
        raise
    # The exceptions that malformed bytes can cause in a decoder; deep nesting ends in a RecursionError.
    except (ValueError, TypeError, KeyError, InvalidOperation, InvalidArgumentError, RecursionError) as error:
        raise EncodingError(f"The bytes hold no plan: {error}.") from error


def _read(whole: object) -> PhysicalPlan:
    if not isinstance(whole, dict) or whole.get("format") != FORMAT:
        raise EncodingError("The bytes hold no plan.")
    if whole.get("version") != VERSION:
        raise EncodingError(
            f"The plan is of version {whole.get('version')}, this worker reads version {VERSION}.",
            fix="Install the same version of Wallaby on the driver and on all executors.",
        )
    codec = Codec(_SHARED)
    codec.read_table(whole.get("table"))
    plan = codec.read(whole.get("plan"), PhysicalPlan)
    assert isinstance(plan, PhysicalPlan)
    if not len(plan.graph.stages) == len(plan.fragments) == len(plan.labels) == len(plan.rows):
        raise EncodingError("The plan does not have one fragment, one label and one estimate for each stage.")
    if len(plan.graph.links) != len(plan.partition_keys):
        raise EncodingError("The plan does not have partition keys for each link.")
    return plan
