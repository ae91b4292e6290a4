"""Measure how a source tree is divided: `python -m tools.measure.house [root ...]`, a column for each.

The figures of decision 33 come from here. A root is a clone; its engine is in `src/wallaby`, its lab, if there is one,
in `lab/src/wallaby_lab`.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

CLASS = re.compile(r"^class ([A-Z]\w+)", re.MULTILINE)
CRUMB_LINES_MAX = 25


def engine(root: Path) -> list[Path]:
    """The modules of the users' wheel."""
    return sorted((root / "src" / "wallaby").rglob("*.py"))


def lab(root: Path) -> list[Path]:
    """The modules of the lab's wheel."""
    return sorted((root / "lab" / "src" / "wallaby_lab").rglob("*.py"))


def lines(files: Sequence[Path]) -> int:
    """How many lines they have."""
    return sum(path.read_text(encoding="utf-8").count("\n") for path in files)


def fullest_folder(root: Path) -> str:
    """The folder with most modules."""
    counted = Counter(path.parent for path in (*engine(root), *lab(root)) if path.name != "__init__.py")
    ((folder, count),) = counted.most_common(1)
    return f"{count} ({folder.relative_to(root)})"


def classes_of_one_name(root: Path) -> int:
    """How many names two or more classes have."""
    sources = (path.read_text(encoding="utf-8") for path in (*engine(root), *lab(root)))
    return sum(
        count > 1 for count in Counter(name for text in sources for name in CLASS.findall(text)).values()
    )


def busiest_modules(root: Path) -> str:
    """The modules that import most others of the project."""
    found = sorted(((len(_imports(path)), path.stem) for path in (*engine(root), *lab(root))), reverse=True)
    return ", ".join(f"{name} {count}" for count, name in found[:4])


def _imports(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = (node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return {name for name in named if name.split(".")[0] in ("wallaby", "wallaby_lab")}


def crumbs(root: Path) -> int:
    """Modules that are hardly more than a heading."""
    own = (path for path in (*engine(root), *lab(root)) if path.name != "__init__.py")
    return sum(lines([path]) < CRUMB_LINES_MAX for path in own)


FIGURES: dict[str, Callable[[Path], object]] = {
    "lines in the users' wheel": lambda root: f"{lines(engine(root)):,}",
    "lines in the lab's wheel": lambda root: f"{lines(lab(root)):,}",
    "modules": lambda root: len(engine(root)) + len(lab(root)),
    "most modules in one folder": fullest_folder,
    "names that several classes have": classes_of_one_name,
    "project modules imported by the busiest": busiest_modules,
    f"modules of fewer than {CRUMB_LINES_MAX} lines": crumbs,
    "lines of lineage/": lambda root: f"{lines(sorted((root / 'src/wallaby/lineage').glob('*.py'))):,}",
}


def main(roots: Sequence[str]) -> None:
    """Print a Markdown table."""
    found = [Path(root).resolve() for root in roots or (".",)]
    print(f"| figure | {' | '.join(root.name for root in found)} |")
    print(f"|---|{'---|' * len(found)}")
    for name, measure in FIGURES.items():
        print(f"| {name} | {' | '.join(str(measure(root)) for root in found)} |")


if __name__ == "__main__":
    main(sys.argv[1:])
