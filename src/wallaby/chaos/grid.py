"""A grid of runs: one JSON file for each cell, so that it can be resumed, and a summary of all of them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from wallaby.chaos.faults import Fault
from wallaby.chaos.run import Outcome, Verdict
from wallaby.errors import InvalidArgumentError

_LISTED: Final = ("channels_rewound", "outputs_delivered_again", "outputs_read_again", "recoveries")


class Grid:
    """The cells of one directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidArgumentError(
                f"Cannot write to {directory}: {error.strerror}.", fix="Name another --out."
            ) from error

    def missing(self, cells: Iterable[tuple[int, Fault]]) -> list[tuple[int, Fault]]:
        """The cells that have not been run yet."""
        return [(number, fault) for number, fault in cells if not self._path(number, fault.name).exists()]

    def keep(self, outcome: Outcome) -> None:
        """Write a cell down; it has its name when it is whole."""
        path = self._path(outcome.query, outcome.fault)
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(asdict(outcome), indent=1) + "\n", encoding="utf-8")
        unfinished.replace(path)

    def outcomes(self) -> Iterator[dict[str, Any]]:
        """All cells that have been run."""
        for path in sorted(self._directory.glob("q*.json")):
            yield json.loads(path.read_text(encoding="utf-8"))

    def _path(self, number: int, fault: str) -> Path:
        return self._directory / f"q{number:02d}-{re.sub(r'[^a-z0-9]+', '-', fault.lower())}.json"


def summary(outcomes: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """What a grid shows as a whole, and each fault for itself."""
    cells = list(outcomes)
    by_fault: dict[str, list[dict[str, Any]]] = {}
    for cell in cells:
        by_fault.setdefault(cell["fault"], []).append(cell)
    struck = [cell for cell in cells if cell["verdict"] != Verdict.NOT_REACHED.value]
    return {
        "cells": len(cells),
        "seconds": round(sum(cell["seconds"] + max(cell["settle_seconds"], 0) for cell in cells), 1),
        "verdicts": dict(Counter(cell["verdict"] for cell in cells)),
        "struck": len(struck),
        #: Those of them in which the query had to recover: in others it had ended before it could notice, or the fault
        #: cost no worker.
        "recovered": sum(1 for cell in struck if cell["stats"].get("recoveries")),
        "repairs_checked": sum(cell.get("repairs_checked", 0) for cell in cells),
        "detect_seconds": _quantiles(cell["detect_seconds"] for cell in struck),
        "frozen_seconds": _quantiles(
            cell["stats"].get("frozen_seconds") for cell in struck if cell["stats"].get("recoveries")
        ),
        "overhead_seconds": _quantiles(cell["seconds"] - cell["undisturbed_seconds"] for cell in struck),
        **{name: sum(cell["stats"].get(name) or 0 for cell in struck) for name in _LISTED},
        "faults": {name: dict(Counter(c["verdict"] for c in of)) for name, of in sorted(by_fault.items())},
        "bad": [
            {"query": c["query"], "fault": c["fault"], "verdict": c["verdict"], "detail": c["detail"]}
            for c in cells
            if not Verdict(c["verdict"]).is_good
        ],
    }


def _quantiles(values: Iterable[float | None]) -> dict[str, float]:
    known = sorted(value for value in values if value is not None)
    if not known:
        return {}
    return {
        name: round(known[min(int(len(known) * share), len(known) - 1)], 3)
        for name, share in (("median", 0.5), ("p95", 0.95), ("most", 1.0))
    }
