"""The process of one contender: reads commands from standard input, one JSON line each, and prints answers."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

from wallaby_lab.bench.contenders import start


class Child:
    """Performs commands: those defined here, and those of its contender."""

    def __init__(
        self, name: str, data: str, cores: list[int], memory: str, further: dict[str, Any] | None = None
    ) -> None:
        os.sched_setaffinity(0, cores)
        began = time.perf_counter()
        self.contender = start(name, Path(data), len(cores), memory, **(further or {}))
        self.start_seconds = time.perf_counter() - began

    def run(self, sql: str, save: str | None) -> dict[str, Any]:
        """Time a query; write its answer to a file if a path is given."""
        began = time.perf_counter()
        answer = self.contender.ask(sql)
        seconds = time.perf_counter() - began
        if save is not None:
            with pa.OSFile(save, "wb") as sink, pa.ipc.new_file(sink, answer.schema) as writer:
                writer.write_table(answer)
        return {"seconds": seconds, "rows": answer.num_rows}

    def do(self, name: str, arguments: dict[str, Any]) -> Any:
        """Perform a command by name."""
        able = self if name == "run" else self.contender
        return getattr(able, name)(**arguments)


def main() -> None:
    """Serve until the end is requested, or the other side is gone."""
    told = json.loads(sys.argv[1])
    talk = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # output of libraries must not be taken for answers
    child = Child(**told)
    contender = child.contender
    first = {
        "what": contender.what,
        "start_seconds": child.start_seconds,
        "workers": contender.worker_pids(),
    }
    talk.write(json.dumps(first) + "\n")
    try:
        for line in iter(sys.stdin.readline, ""):
            name, arguments = json.loads(line)
            try:
                answer = {"answer": child.do(name, arguments)}
            except Exception as error:  # noqa: BLE001 - whatever a contender raises is its result
                answer = {"error": f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"}
            talk.write(json.dumps(answer) + "\n")
    finally:
        contender.end()


if __name__ == "__main__":
    main()
