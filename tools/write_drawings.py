"""Draw the figures of docs/ again, from the raw figures beside them and in reports/. `make pages` runs it."""

from __future__ import annotations

import json
from pathlib import Path

from wallaby_lab.bench.figures import at_scale
from wallaby_lab.bench.paper.written import PREDICTED, redrawn
from wallaby_lab.bench.plots import Drawing, draw_queries
from wallaby_lab.bench.report import drawings, of_json

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
FIGURES = DOCS / "paper-sf10"
RESULTS = DOCS / "results"
#: Pages of docs/results with drawings, each with a report of the same name in reports/.
PAGES = ("bench-sf1", "bench-sf10")
#: A report of what lost workers cost, which other pages show as a drawing.
RECOVERY = "bench-recovery-sf30"


def of_pages() -> dict[Path, Drawing]:
    """The drawings of the pages on single measurements."""
    found: dict[Path, Drawing] = {}
    for name in PAGES:
        report = json.loads((ROOT / "reports" / f"{name}.json").read_text(encoding="utf-8"))
        found |= {
            RESULTS / file: each for file, each in drawings(of_json(report), report["data"], name).items()
        }
    return found | {RESULTS / f"{RECOVERY}-queries.svg": of_recovery()}


def of_recovery() -> Drawing:
    """What a lost machine costs each query, beside SparkSQL."""
    report = json.loads((ROOT / "reports" / f"{RECOVERY}.json").read_text(encoding="utf-8"))
    scales = {name: described.rpartition("data ")[2] for name, described in report["contenders"].items()}
    ratios = {
        f"{name}, {at_scale(scales[name])}": {
            int(query): float(found["ratio"]) for query, found in by_query.items()
        }
        for name, by_query in report["figures"].items()
    }
    return draw_queries(
        ratios, "One of four machines killed halfway: time over that without a loss, TPC-H, by query"
    )


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
