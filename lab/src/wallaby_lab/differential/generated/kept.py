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
from typing import Final

import wallaby
from wallaby_lab.differential.generated.functions import ExampleFunction

_ENGINE: Final = Path(wallaby.__file__).parent
#: What decides about functions: how the engine reads them, with their examples, and what is made of these.
_SOURCES: Final = (_ENGINE / "catalyst", _ENGINE / "functions", _ENGINE / "reading", Path(__file__).parent)


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
    found = hashlib.sha256()
    for folder in _SOURCES:
        for path in sorted(folder.rglob("*.py")):
            found.update(path.read_bytes())
    return found.hexdigest()[:12]
