"""Draw the figures of docs/ again, from the raw figures beside them and in reports/. `make docs` runs it."""

from __future__ import annotations

import json
from pathlib import Path

from wallaby_lab.bench.paper.written import PREDICTED, redrawn
from wallaby_lab.bench.plots import Drawing
from wallaby_lab.bench.report import drawings, of_json

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
FIGURES = DOCS / "paper-sf10"
#: Pages of docs/ with drawings, each with a report of the same name in reports/.
PAGES = ("bench-sf1", "bench-sf10")


def of_pages() -> dict[Path, Drawing]:
    """The drawings of the pages on single measurements."""
    found: dict[Path, Drawing] = {}
    for name in PAGES:
        report = json.loads((ROOT / "reports" / f"{name}.json").read_text(encoding="utf-8"))
        found |= {DOCS / file: each for file, each in drawings(of_json(report), report["data"], name).items()}
    return found


def of_figures() -> dict[Path, Drawing]:
    """The drawings of the paper's figures, and of what is predicted."""
    files = [*FIGURES.glob("paper-*.json"), FIGURES / PREDICTED]
    return {path.with_name(f"{path.name.removesuffix('.json')}.svg"): redrawn(path) for path in sorted(files)}


def main() -> None:
    """Write all of them; those of the paper's figures also as PNG."""
    for path, drawing in (of_pages() | of_figures()).items():
        path.write_text(drawing.svg(), encoding="utf-8")
    for path, drawing in of_figures().items():
        path.with_name(f"{path.name.removesuffix('.svg')}.png").write_bytes(drawing.png())


if __name__ == "__main__":
    main()
