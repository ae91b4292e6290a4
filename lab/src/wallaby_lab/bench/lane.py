"""The benchmark's side of a contender's process: it starts the process, sends commands, and ends it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wallaby.errors import WallabyError
from wallaby_lab.bench.contenders import FURTHER

END_SECONDS = 30


class ContenderError(WallabyError):
    """A contender did not start, or has ended."""

    condition = "WALLABY_BENCH_CONTENDER"


class Lane:
    """One contender's process. Everything that it starts runs on the given cores. Several may start at once."""

    def __init__(
        self,
        name: str,
        data: Path,
        cores: Sequence[int],
        memory: str,
        packages: Path | None = None,
        **further: object,
    ) -> None:
        """Start it. A contender that Wallaby does not depend on finds `packages` before all others."""
        self.name = name
        told = {
            "name": name,
            "data": str(data),
            "cores": list(cores),
            "memory": memory,
            "further": further,
        }
        self._said = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - as long as the process
        environment = dict(os.environ)
        if packages is not None and name in FURTHER:
            environment["PYTHONPATH"] = os.pathsep.join(
                [str(packages.absolute()), *filter(None, [environment.get("PYTHONPATH")])]
            )
        self._process = subprocess.Popen(  # noqa: S603 - our own module, and no shell
            [sys.executable, "-m", "wallaby_lab.bench.child", json.dumps(told)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            start_new_session=True,
            env=environment,
        )
        self.pid = self._process.pid
        self.what = ""
        self.start_seconds = 0.0
        #: The processes that it calls its workers, if it has any.
        self.workers: tuple[int, ...] = ()

    def await_start(self) -> None:
        """Wait until it is ready for queries; raise the reason if it does not start."""
        try:
            started = self._read()
        except ContenderError:
            self.end()
            raise
        self.what = started["what"]
        self.start_seconds = started["start_seconds"]
        self.workers = tuple(started["workers"])

    def tell(self, name: str, **arguments: object) -> dict[str, Any]:
        """Send a command; returns its `answer` or `error`."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([name, arguments]) + "\n")
        self._process.stdin.flush()
        return self._read()

    def ask(self, name: str, **arguments: object) -> Any:
        """Send a command; raises if there is an error."""
        told = self.tell(name, **arguments)
        if "error" in told:
            raise ContenderError(f"{self.name} failed: {told['error']}")
        return told["answer"]

    def end(self) -> None:
        """End the process; kill what does not end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._process.stdout.close()
        self._said.close()

    def _last_words(self) -> str:
        self._process.wait(END_SECONDS)
        self._said.seek(0)
        said = [line.strip() for line in self._said if line.strip()]
        lines = [line for line in said if not line.startswith(("at ", "... "))]  # of a trace of Java's
        return lines[-1] if lines else f"it exited with {self._process.returncode}, without a word."

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ContenderError(
                f"{self.name} has ended: {self._last_words()}", fix="Is it installed? Has it enough memory?"
            )
        answer: dict[str, Any] = json.loads(line)
        return answer
