"""The functions that random queries are made of, kept in a file: to find out about them takes longer than many queries.

They are found again when what they depend on has changed: the examples, or what of them the registry calls native. A
seed means the same query as long as they are the same.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from wallaby_lab.differential.functions import ExampleFunction

_FILES = ("expand", "functions", "tables", "values")
#: Of the package, what decides about functions.
_SOURCES = ("catalyst/*", "differential/examples/*", *(f"differential/{name}" for name in _FILES))


def kept_functions(directory: Path, find: Callable[[], Sequence[ExampleFunction]]) -> list[ExampleFunction]:
    """The functions in a directory's file, or those that are found now, and put there; other processes wait."""
    path = directory / f"functions-{_digest()}.json"
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            unfinished = path.with_suffix(".unfinished")
            unfinished.write_text(json.dumps([asdict(one) for one in find()], indent=0), encoding="utf-8")
            unfinished.replace(path)
    return [
        ExampleFunction(**{**one, "arguments": tuple(one["arguments"])})
        for one in json.loads(path.read_text(encoding="utf-8"))
    ]


def _digest() -> str:
    package = Path(__file__).parents[1]
    found = hashlib.sha256()
    for source in _SOURCES:
        for path in sorted(package.glob(f"{source}.py")):
            found.update(path.read_bytes())
    return found.hexdigest()[:12]
