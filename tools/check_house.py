"""The house rules that no linter knows: run by `make check`, exits with 1 and a list when one is broken.

- no module under a `src` is longer than 500 lines;
- every Python module says in a docstring what it is;
- every link of a page to another, and to a heading of one, leads somewhere;
- every public class of the protocol's rooms is in docs/glossary.md, or plain English;
- no file of the project contains a path of one machine or the address of a package index, so that a clone works
  anywhere and installs from the index that the user's pip is configured for.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINES_MAX = 500
GIT_TIMEOUT_SECONDS = 30

# The patterns are put together from pieces so that this file does not match itself.
HOMES = ("root", "work", "Users", r"home/\w+")
MACHINE_PATH = re.compile(r"(?<![\w.$~:/-])/(?:" + "|".join(HOMES) + r")/[\w.-]")
INDEX_OPTIONS = ("--index" + "-url", "--extra-index" + "-url", "--find" + "-links")
INDEX_ADDRESS = re.compile("|".join((*INDEX_OPTIONS, r"https?://[^\s\"')>]*/simple\b", r"pypi\.org")))


LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+)$", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
ELSEWHERE = re.compile(r"[a-z]+:")

ROOMS = ("lineage", "coordinator", "head", "node", "worker", "exchange", "gcs", "faults")
#: Names that Spark users understand without an entry.
PLAIN = frozenset(
    {
        "Connection",
        "ConnectionLimits",
        "Coordinator",
        "CoordinatorSettings",
        "Execution",
        "Figures",
        "Head",
        "Log",
        "Loop",
        "NodeSettings",
        "Observer",
        "QueryStatus",
        "Script",
        "WorkerAddress",
        "WorkerInfo",
    }
)
GLOSSARY_ENTRY = re.compile(r"^\| (`\w+`(?:, `\w+`)*) \|", re.MULTILINE)


def project_files() -> tuple[Path, ...]:
    """Every file that is tracked or could be: what git does not ignore, in a fixed order."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],  # noqa: S607 - git is on PATH
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=GIT_TIMEOUT_SECONDS,
    )
    names = sorted(name for name in listing.stdout.decode().split("\0") if name)
    return tuple(ROOT / name for name in names if (ROOT / name).is_file())


def check_length(path: Path, text: str) -> Iterator[str]:
    """Check that a file is small."""
    lines = text.count("\n")
    if "src" in path.relative_to(ROOT).parts and path.suffix in {".py", ".lua"} and lines > LINES_MAX:
        yield f"{path.relative_to(ROOT)}: {lines} lines, at most {LINES_MAX}: give each idea its own file"


def check_docstring(path: Path, text: str) -> Iterator[str]:
    """Check that a module has a docstring."""
    if path.suffix != ".py":
        return
    try:
        module = ast.parse(text)
    except SyntaxError as error:
        yield f"{path.relative_to(ROOT)}:{error.lineno}: does not parse: {error.msg}"
        return
    if not ast.get_docstring(module):
        yield f"{path.relative_to(ROOT)}:1: no module docstring: say what it is and why it exists"


def check_addresses(path: Path, text: str) -> Iterator[str]:
    """Check that a file has no addresses or paths of one machine."""
    for number, line in enumerate(text.splitlines(), start=1):
        for pattern, what in ((MACHINE_PATH, "a path of one machine"), (INDEX_ADDRESS, "a package index")):
            if found := pattern.search(line):
                yield f"{path.relative_to(ROOT)}:{number}: names {what}: {found.group(0)}"


def check_links(path: Path, text: str) -> Iterator[str]:
    """Check that the links of a page lead somewhere."""
    if path.suffix != ".md":
        return
    for target in LINK.findall(FENCED.sub("", text)):
        name, _, anchor = target.partition("#")
        there = path.parent / name if name else path
        if ELSEWHERE.match(target):
            continue
        if name and not there.exists():
            yield f"{path.relative_to(ROOT)}: links to {target}, and there is no such file"
        elif anchor and anchor not in anchors(there.read_text(encoding="utf-8") if name else text):
            yield f"{path.relative_to(ROOT)}: links to {target}, and there is no such heading"


def anchors(page: str) -> frozenset[str]:
    """The names by which headings of a page can be linked to: small letters, hyphens for spaces, no punctuation."""
    headings = HEADING.findall(FENCED.sub("", page))
    return frozenset(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings)


def public_classes(source: str) -> tuple[str, ...]:
    """The public classes that a module defines."""
    found = (node.name for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    return tuple(name for name in found if not name.startswith("_"))


def check_glossary(classes: Mapping[str, list[Path]], room_of: Mapping[str, str], page: str) -> Iterator[str]:
    """The entries that are missing, superfluous or ambiguous.

    `classes` has where each class of the project is defined, `room_of` the room of each class that has one.
    """
    explained = {name for entry in GLOSSARY_ENTRY.findall(page) for name in re.findall(r"\w+", entry)}
    for name, room in sorted(room_of.items()):
        if name not in explained and name not in PLAIN:
            yield f"docs/glossary.md: says nothing of {name} ({room}), and PLAIN does not list it"
        if name in explained and name in PLAIN:
            yield f"docs/glossary.md: explains {name}, which PLAIN lists as plain"
        if len(classes[name]) > 1:
            yield f"{name} ({room}) is the name of several classes: {', '.join(map(str, classes[name]))}"
    for name in sorted((explained | PLAIN) - room_of.keys()):
        yield f"docs/glossary.md: {name} is no public class of {', '.join(ROOMS)}"


def check_classes() -> Iterator[str]:
    """Check that every public class of the protocol's rooms has a unique name, and an entry in the glossary."""
    classes: dict[str, list[Path]] = {}
    room_of: dict[str, str] = {}
    for sources in ("src/wallaby", "lab/src/wallaby_lab"):
        for module in sorted((ROOT / sources).rglob("*.py")):
            room = module.relative_to(ROOT / sources).parts[0] if sources == "src/wallaby" else ""
            for name in public_classes(module.read_text(encoding="utf-8")):
                classes.setdefault(name, []).append(module.relative_to(ROOT))
                if room in ROOMS:
                    room_of[name] = room
    yield from check_glossary(classes, room_of, (ROOT / "docs/glossary.md").read_text(encoding="utf-8"))


def main() -> int:
    """Check every file; print what is wrong."""
    problems: list[str] = []
    files = project_files()
    for path in files:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a binary file has no lines to check
        problems += [*check_length(path, text), *check_docstring(path, text)]
        problems += [*check_addresses(path, text), *check_links(path, text)]
    problems += check_classes()
    for problem in problems:
        print(problem)
    print(f"house rules: {len(files)} files checked, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
