"""Cache the functions for random queries in a file: finding them takes longer than running many queries.

They are found again when the examples, or their native part, have changed. A seed gives the same query as long as they
are the same.
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
#: The sources that determine the functions: how the engine reads them, their examples, and the expansion of these.
_SOURCES: Final = (_ENGINE / "catalyst", _ENGINE / "functions", _ENGINE / "reading", Path(__file__).parent)


def kept_functions(directory: Path, find: Callable[[], Sequence[ExampleFunction]]) -> list[ExampleFunction]:
    """Load the functions from a directory's file, or find and save them; other processes wait meanwhile."""
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
