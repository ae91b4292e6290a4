"""The cases of one part of the benchmark: those that an earlier run measured are not measured again.

A part over large tables takes longer than a machine may be free. So each case is saved when it has been measured, and
no case begins after the time that the run was given.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Case = Mapping[str, Any]


class TimeIsUpError(Exception):
    """The run has used its time; what it has measured is saved. Never leaves the benchmark."""


@dataclass(slots=True)
class PartProgress:
    """How one part proceeds. `keep` saves the cases measured so far."""

    known: Sequence[Case] = ()
    keep: Callable[[list[Case]], None] = lambda _: None
    #: The moment after which no case begins, on the monotonic clock; None: never.
    until: float | None = None
    cases: list[Case] = field(default_factory=list)

    def require_time(self) -> None:
        """Check that another case may begin.

        Raises:
            TimeIsUpError: the time is up.
        """
        if self.until is not None and time.monotonic() > self.until:
            raise TimeIsUpError

    def run(self, name: str, measure: Callable[[], Case]) -> Case:
        """Measure a case, unless an earlier run did, and save it.

        Raises:
            TimeIsUpError: the time is up.
        """
        found = next((case for case in self.known if case["name"] == name), None)
        if found is None:
            self.require_time()
            found = {"name": name, **measure()}
        self.cases.append(found)
        # Earlier runs may have measured cases that come later.
        names = {case["name"] for case in self.cases}
        self.keep([*self.cases, *(case for case in self.known if case["name"] not in names)])
        return found
