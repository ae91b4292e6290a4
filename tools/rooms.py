"""The rooms of the house as the import contracts and the imports have them, for the drawings in ARCHITECTURE.md."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parent.parent
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
BEGIN = "<!-- layers: made from pyproject.toml by `make pages` -->\n"
END = "<!-- end of layers -->\n"
_EDGE = re.compile(r"^\s*(\w+)(?:\[[^\]]*\])? --> (\w+)", re.MULTILINE)
_NODE = re.compile(r"(\w+)\[\"(\w+):")


def layers(container: str) -> list[str]:
    """The layers of a package, from the top down, as its contract has them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    return next(each["layers"] for each in contracts if each.get("containers") == [container])


def rooms(package: str) -> set[str]:
    """The packages and modules right below a package."""
    folder = ROOT / ("src" if package == "wallaby" else "lab/src") / package
    found = {path.name for path in folder.iterdir() if (path / "__init__.py").exists()}
    return found | {path.stem for path in folder.glob("*.py") if path.stem != "__init__"}


def architecture() -> str:
    """ARCHITECTURE.md with its layers written anew."""
    page = ARCHITECTURE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    written = "".join(f"{_plain(layer)}\n" for layer in layers("wallaby"))
    return f"{before}{BEGIN}\n```text\n{written}```\n\n{END}{after}"


def _plain(layer: str) -> str:
    return layer.replace("(", "").replace(")", "")


def drawn_calls(page: str) -> set[tuple[str, str]]:
    """Which room calls which, as the solid arrows of the page's drawings have it."""
    return set(_EDGE.findall(page))


def drawn_rooms(page: str) -> set[tuple[str, str]]:
    """The boxes of the page's drawings: their names, and the rooms that their texts name."""
    return set(_NODE.findall(page))


def calls(package: str) -> set[tuple[str, str]]:
    """Which room imports which."""
    graph = grimp.build_graph(package)
    found = set()
    for importer in graph.modules:
        for imported in graph.find_modules_directly_imported_by(importer):
            pair = importer.split(".")[1:2], imported.split(".")[1:2]
            if all(pair) and pair[0] != pair[1]:
                found.add((pair[0][0], pair[1][0]))
    return found
