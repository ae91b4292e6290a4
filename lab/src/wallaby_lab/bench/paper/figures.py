"""All figures by their letters, and the table of policies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from wallaby_lab.bench.paper.disturbed import case_study, policies, recovery
from wallaby_lab.bench.paper.setup import Figure, Setup
from wallaby_lab.bench.paper.undisturbed import (
    against_spark,
    dependencies,
    more_workers,
    overheads,
    pipelined,
)

FIGURES: Final[Mapping[str, Callable[[Setup], Figure]]] = {
    "a": against_spark,
    "b": pipelined,
    "c": dependencies,
    "d": overheads,
    "e": recovery,
    "f": case_study,
    "g": more_workers,
    "policies": policies,
}
