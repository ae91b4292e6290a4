"""The house rules that no linter knows: run by `make check`, exits with 1 and a list when one is broken.

- no source file under a `src`, of whatever language, is longer than 500 lines, and no folder of sources, tests or tools
  has more than 20 of them, but for lists of files of one form;
- every Python module says in a docstring what it is;
- every link of a page to another, and to a heading of one, leads somewhere;
- every commit that a page names is in the history of this one;
- no two public classes of engine and lab have the same name, and those of the protocol's rooms, with their named
  types, are in docs/glossary.md, or plain English;
- the lab touches no private name of the engine: it has `wallaby.inspection`;
- no file of the project contains a path of one machine or the address of a package index, so that a clone works
  anywhere and installs from the index that the user's pip is configured for.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: What we write code in. Queries in SQL and recorded answers are data, and a folder may have as many as there are.
LANGUAGES = frozenset({".py", ".java", ".lua"})
#: One limit for all languages: it stands for one idea, and a reader of an idea needs as much room in each. Java spends
#: twenty to forty lines on imports, and its longest file still has a quarter of the limit to spare.
LINES_MAX = 500
#: What one can look over without scrolling. Files of several languages count together, because they are looked over
#: together: sources of Java are in folders of their own, `java`, below the room that loads them.
FILES_MAX = 20
#: The folders below which no folder may have more files.
FOLDERS = frozenset({"src", "tests", "tools"})
#: Folders that are lists, of files of one form with one reader, so that one looks a name up and never looks them over:
#: the control store has a script for each of its actions, called as the action is.
LISTS = frozenset({Path("src/wallaby/gcs/scripts")})
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
#: A short name of a commit; worker names end in such words too, after a hyphen.
COMMIT = re.compile(r"(?<![\w-])[0-9a-f]{7,10}(?![\w-])")

#: Private names of Spark and Python that have no public form.
FOREIGN_PRIVATE = frozenset({"_jdf", "_jsc", "_jvm", "_gateway", "_exit"})

ROOMS = ("lineage", "coordinator", "head", "node", "worker", "exchange", "gcs", "faults")
#: Names that Spark users understand without an entry.
PLAIN = frozenset(
    {
        "Connection",
        "ConnectionLimits",
        "Coordinator",
        "CoordinatorSettings",
        "Head",
        "Loop",
        "NodeSettings",
        "QueryStatus",
        "WorkerAddress",
    }
)
#: The form of a class's name, which constants and functions do not have.
NAMED_TYPE = re.compile(r"[A-Z]\w*[a-z]")
GLOSSARY_ENTRY = re.compile(r"^\| (`\w+`(?:, `\w+`)*) \|", re.MULTILINE)


def git(*arguments: str) -> str:
    """What a git command prints about this repository."""
    done = subprocess.run(  # noqa: S603 - only commands of this file
        ["git", *arguments],  # noqa: S607 - git is on PATH
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=GIT_TIMEOUT_SECONDS,
    )
    return done.stdout.decode()


def project_files() -> tuple[Path, ...]:
    """Every file that is tracked or could be: what git does not ignore, in a fixed order."""
    listing = git("ls-files", "--cached", "--others", "--exclude-standard", "-z")
    names = sorted(name for name in listing.split("\0") if name)
    return tuple(ROOT / name for name in names if (ROOT / name).is_file())


def check_length(path: Path, text: str) -> Iterator[str]:
    """Check that a file is small."""
    lines = text.count("\n")
    if "src" in path.relative_to(ROOT).parts and path.suffix in LANGUAGES and lines > LINES_MAX:
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


def named_commits(page: str) -> frozenset[str]:
    """What a page names as commits: short names with letters and digits, outside of quoted output."""
    words = COMMIT.findall(FENCED.sub("", page))
    return frozenset(word for word in words if re.search("[a-f]", word) and re.search("[0-9]", word))


def check_commits(path: Path, text: str, history: Sequence[str]) -> Iterator[str]:
    """Check that the commits that a page names exist; `history` has the full names in order."""
    if path.suffix != ".md":
        return
    for name in sorted(named_commits(text)):
        place = bisect_left(history, name)
        if place == len(history) or not history[place].startswith(name):
            yield f"{path.relative_to(ROOT)}: names the commit {name}, which the history does not have"


def history() -> tuple[str, ...] | str:
    """The full names of this commit and all before it, in order; or why they are not known here."""
    if git("rev-parse", "--is-shallow-repository").strip() != "false":
        return "this is a shallow clone"
    found = tuple(sorted(git("rev-list", "HEAD").split()))
    return found if len(found) > 1 else "this checkout has no history"


def anchors(page: str) -> frozenset[str]:
    """The names by which headings of a page can be linked to: small letters, hyphens for spaces, no punctuation."""
    headings = HEADING.findall(FENCED.sub("", page))
    return frozenset(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings)


def public_classes(source: str) -> tuple[str, ...]:
    """The public classes that a module defines."""
    found = (node.name for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    return tuple(name for name in found if not name.startswith("_"))


def named_types(source: str) -> tuple[str, ...]:
    """The public names that a module gives to types: `NewType`s, and capitalized aliases."""
    assigned = (node for node in ast.parse(source).body if isinstance(node, ast.Assign | ast.AnnAssign))
    found = [
        target.id
        for node in assigned
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and NAMED_TYPE.match(target.id) and not _is_type_variable(node.value)
    ]
    return tuple(found)


def _is_type_variable(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "TypeVar"


def private_names(source: str) -> Iterator[tuple[int, str]]:
    """Where a module uses private names of other objects and modules, and which: not its own, nor those it inherits."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and _is_private(node.attr) and node.attr not in FOREIGN_PRIVATE:
            owner = node.value
            is_own = isinstance(owner, ast.Name) and owner.id in ("self", "cls")
            inherits = (
                isinstance(owner, ast.Call) and isinstance(owner.func, ast.Name) and owner.func.id == "super"
            )
            if not (is_own or inherits):
                yield node.lineno, node.attr
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, each.name) for each in node.names if _is_private(each.name))


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def check_private_names(path: Path, text: str) -> Iterator[str]:
    """Check that the lab reaches the engine by public names only."""
    if path.suffix == ".py" and path.is_relative_to(ROOT / "lab/src"):
        for line, name in private_names(text):
            yield f"{path.relative_to(ROOT)}:{line}: uses the private name {name}: see wallaby.inspection"


def check_folders(files: Iterable[Path]) -> Iterator[str]:
    """Check that no folder of sources, tests or tools is a long flat list."""
    sources = (
        path
        for path in files
        if FOLDERS & {*path.parts} and path.suffix in LANGUAGES and path.stem not in ("__init__", "conftest")
    )
    for folder, count in sorted(Counter(path.parent for path in sources).items()):
        if count > FILES_MAX and folder not in LISTS:
            yield f"{folder}: {count} source files, at most {FILES_MAX}: divide the folder"


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
    for name, modules in sorted(classes.items()):
        if len(modules) > 1:
            yield f"{name} is the name of several classes: {', '.join(map(str, modules))}"
    for name in sorted((explained | PLAIN) - room_of.keys()):
        yield f"docs/glossary.md: {name} is no public class or type of {', '.join(ROOMS)}"


def check_classes() -> Iterator[str]:
    """Check that public classes have unique names, and those of the protocol's rooms an entry in the glossary."""
    classes: dict[str, list[Path]] = {}
    room_of: dict[str, str] = {}
    for sources in ("src/wallaby", "lab/src/wallaby_lab"):
        for module in sorted((ROOT / sources).rglob("*.py")):
            room = module.relative_to(ROOT / sources).parts[0] if sources == "src/wallaby" else ""
            for name in public_classes(module.read_text(encoding="utf-8")):
                classes.setdefault(name, []).append(module.relative_to(ROOT))
                if room in ROOMS:
                    room_of[name] = room
            if room in ROOMS:
                room_of |= dict.fromkeys(named_types(module.read_text(encoding="utf-8")), room)
    yield from check_glossary(classes, room_of, (ROOT / "docs/glossary.md").read_text(encoding="utf-8"))


def main() -> int:
    """Check every file; print what is wrong."""
    problems: list[str] = []
    files = project_files()
    commits = history()
    if isinstance(commits, str):
        print(f"house rules: the commits that pages name were not checked, because {commits}")
    for path in files:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a binary file has no lines to check
        problems += [*check_length(path, text), *check_docstring(path, text)]
        problems += [*check_addresses(path, text), *check_links(path, text)]
        problems += check_private_names(path, text)
        if not isinstance(commits, str):
            problems += check_commits(path, text, commits)
    problems += [*check_folders(path.relative_to(ROOT) for path in files), *check_classes()]
    for problem in problems:
        print(problem)
    print(f"house rules: {len(files)} files checked, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
