"""A grid of runs: one JSON file for each cell, so that it can be resumed, and a summary of the requested cells.

Cells belong to circumstances: the sources, tables, workers and settings of the run. Under other circumstances they are
run anew, and earlier results are left alone.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from wallaby.errors import InvalidArgumentError
from wallaby_lab.chaos.faults import ChaosFault
from wallaby_lab.chaos.run import RunOutcome, RunVerdict
from wallaby_lab.provenance import commit, digest

_LISTED: Final = (
    *("channels_rewound", "outputs_delivered_again", "outputs_read_again", "recoveries", "restarts"),
)
_OF: Final = "circumstances.json"

Cell = tuple[int, ChaosFault]


def circumstances(data: Path, workers: int, master: str, **settings: object) -> dict[str, Any]:
    """What the outcome of a cell may depend on besides its query and its fault."""
    files = sorted(path for path in data.rglob("*") if path.is_file())
    return {
        "sources": digest(),
        "data": data.name,
        "data_bytes": sum(path.stat().st_size for path in files),
        "workers": workers,
        "master": master,
        **settings,
    }


class RunGrid:
    """The cells of one directory that were run under these circumstances."""

    def __init__(self, directory: Path, of: Mapping[str, Any]) -> None:
        text = json.dumps(dict(of), indent=1, sort_keys=True)
        self.of = dict(of)
        self._all = directory
        self._directory = directory / hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            (self._directory / _OF).write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise InvalidArgumentError(
                f"Cannot write to {directory}: {error.strerror}.", fix="Name another --out."
            ) from error

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """The cells that have not been run yet."""
        return [(number, fault) for number, fault in cells if not self._path(number, fault.name).exists()]

    def others(self) -> int:
        """The number of cells with other circumstances."""
        found = [path for path in self._all.glob("**/q*.json") if path.parent != self._directory]
        return len(found)

    def keep(self, outcome: RunOutcome) -> None:
        """Write a cell atomically."""
        path = self._path(outcome.query, outcome.fault)
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(asdict(outcome), indent=1) + "\n", encoding="utf-8")
        unfinished.replace(path)

    def outcomes(self, cells: Iterable[Cell]) -> Iterator[dict[str, Any]]:
        """The outcomes of those cells that have been run."""
        for number, fault in cells:
            if (path := self._path(number, fault.name)).exists():
                yield json.loads(path.read_text(encoding="utf-8"))

    def _path(self, number: int, fault: str) -> Path:
        return self._directory / f"q{number:02d}-{re.sub(r'[^a-z0-9]+', '-', fault.lower())}.json"


def summary_of(grid: RunGrid, cells: Sequence[Cell]) -> dict[str, Any]:
    """The summary of these cells, with the number that were not run, and their circumstances."""
    found = summary(grid.outcomes(cells))
    return {
        "commit": commit(),
        "of": grid.of,
        "cells_asked_for": len(cells),
        "not_run": len(cells) - found["cells"],
        **found,
    }


def summary(outcomes: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The summary of a grid, in total and by fault."""
    cells = list(outcomes)
    by_fault: dict[str, list[dict[str, Any]]] = {}
    for cell in cells:
        by_fault.setdefault(cell["fault"], []).append(cell)
    struck = [cell for cell in cells if cell["verdict"] != RunVerdict.NOT_REACHED.value]
    return {
        "cells": len(cells),
        "seconds": round(sum(cell["seconds"] + max(cell["settle_seconds"], 0) for cell in cells), 1),
        "verdicts": dict(Counter(cell["verdict"] for cell in cells)),
        #: These show nothing: the query never reached the fault's point, or had ended before.
        "not_reached": len(cells) - len(struck),
        "struck": len(struck),
        #: Those in which the query had to recover: in the others it had ended before it could notice, or the fault cost
        #: no worker.
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
            if not RunVerdict(c["verdict"]).is_good
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
