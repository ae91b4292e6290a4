"""Faults that are ordered to strike in a real process, at the simulation's own fail points.

An order is a line of text, `who:point:nth:act` with optional parts, for example

    w2:commit:3:kill              the TaskManager of place 2 kills itself before its third commit
    w2:commit:3:kill:after        the same, when the answer to that commit comes in
    *:deliver:5:stop=3s           the TaskManager that makes the fifth delivery stops for three seconds
    w0:back-up:2:fail             the second backup finds no room
    w1:execute:1:slow=50ms        from its first step on, every step waits before it begins
    *:execute@s1.c0.t4:1:kill:x9  every TaskManager that executes that task dies of it, up to nine times
    w1:deliver@w0:1:fail:x99      what place 1 sends to place 0 is not answered, 99 times
    w1:commit:2:deafen            its data server closes, and the process lives on
    *:execute:2:hoard=1g          the second step takes this much uncounted memory, as Arrow data
    *:execute:2:hoard-sql=1g      the same, as the result of a DuckDB statement
    *:execute:2:hoard-native=1g   the same, in a way that cannot be interrupted
    w0:back-up:2:fill=1m          from its second backup on, no file of the process grows beyond that: its disk is full
    w0:deliver:3:forget           the third delivery is not made, and is never answered: whoever waits for it waits
    head:freeze:1:restart         the coordinator is forgotten, and a new one begins

Each process counts its visits from the time of the order. An order strikes once, in the process that gets there first,
unless it says how often. Each strike is recorded and synced to disk before the fault acts, so that a report can
distinguish what struck from what was only planned.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from wallaby.config.settings import Settings
from wallaby.errors import ConfigurationError
from wallaby.lineage.effects import FailPoint
from wallaby.lineage.names import HEAD

ANYBODY: Final = "*"
_WHO: Final = re.compile(r"\*|head|w\d+")
_ONLY: Final = re.compile(r"s\d+(\.c\d+\.t\d+)?|w\d+|head")
_SIZE: Final = re.compile(r"(\d+)([mg])")
_SECONDS: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s)")
_ARMED: Final = "armed"
_FORM: Final = "who:point:nth:act, for example w2:commit:3:kill"


class FaultAct(Enum):
    """What a fault does to a process at a fail point."""

    KILL = "kill"
    STOP = "stop"
    FAIL = "fail"
    DELAY = "delay"
    SLOW = "slow"
    DEAFEN = "deafen"
    FORGET = "forget"
    RESTART = "restart"
    HOARD = "hoard"
    HOARD_SQL = "hoard-sql"
    HOARD_NATIVE = "hoard-native"
    FILL = "fill"


_TIMED: Final = (FaultAct.STOP, FaultAct.DELAY, FaultAct.SLOW)
#: What takes memory: only a step can.
_HOARDS: Final = (FaultAct.HOARD, FaultAct.HOARD_SQL, FaultAct.HOARD_NATIVE)
_SIZED: Final = (*_HOARDS, FaultAct.FILL)
_STEPS: Final = (FailPoint.READ, FailPoint.EXECUTE, FailPoint.RETRACE, FailPoint.REREAD)
#: Acts that may strike the driver, which is assumed not to fail as a whole.
_OF_HEAD: Final = (FaultAct.FAIL, FaultAct.DELAY, FaultAct.SLOW, FaultAct.RESTART, FaultAct.FORGET)


def point_name(point: FailPoint) -> str:
    """The name of a fail point in orders and reports."""
    return point.name.lower().replace("_", "-")


_POINTS: Final = {point_name(point): point for point in FailPoint}


@dataclass(frozen=True, slots=True)
class FaultOrder:
    """One fault that is to strike."""

    who: str
    point: FailPoint
    nth: int
    act: FaultAct
    seconds: float = 0.0
    after: bool = False
    times: int = 1
    #: Only visits for this task or stage, or towards the worker of this place, count; empty for any.
    only: str = ""
    size_bytes: int = 0

    def __str__(self) -> str:
        at = f"@{self.only}" if self.only else ""
        act = self.act.value + (f"={self.seconds * 1000:g}ms" if self.act in _TIMED else "")
        act += f"={self.size_bytes >> 20}m" if self.act in _SIZED else ""
        more = (":after" if self.after else "") + (f":x{self.times}" if self.times > 1 else "")
        return f"{self.who}:{point_name(self.point)}{at}:{self.nth}:{act}{more}"

    def counts(self, effect: object) -> bool:
        """Does the order count this effect as a visit?"""
        if getattr(effect, "point", None) is not self.point:
            return False
        target, task = str(getattr(effect, "target", "")), str(getattr(effect, "task", ""))
        return not self.only or self.only in (task, task.partition(".")[0], target.partition("-")[0])

    def concerns(self, worker: str) -> bool:
        """May the order strike at this worker, or at the head?"""
        if worker == HEAD or self.who == HEAD:
            return worker == self.who
        return self.who == ANYBODY or worker.partition("-")[0] == self.who


def parse(text: str) -> FaultOrder:
    """Parse an order.

    Raises:
        ConfigurationError: the text is not an order; the message says why.
    """
    who, point, nth, act, *more = [*(part.strip() for part in text.split(":")), "", "", ""]
    more = [part for part in more if part]
    point, _, only = point.partition("@")
    act, _, time = act.partition("=")
    _require(_WHO.fullmatch(who) is not None, text, f"{who!r} is neither w and a place, nor head, nor *")
    _require(point in _POINTS, text, f"{point!r} is no fail point; there are {', '.join(_POINTS)}")
    _require(
        not only or _ONLY.fullmatch(only) is not None,
        text,
        f"{only!r} is neither a task, a stage nor a place",
    )
    _require(nth.isdigit() and int(nth) > 0, text, f"{nth!r} is not a number from 1 on")
    _require(
        act in {a.value for a in FaultAct}, text, f"{act!r} is none of {', '.join(a.value for a in FaultAct)}"
    )
    found = FaultAct(act)
    _require(not time or found in (*_TIMED, *_SIZED), text, f"{act} takes neither a time nor a size")
    seconds, size = _SECONDS.fullmatch(time), _SIZE.fullmatch(time) if found in _SIZED else None
    _require((size is not None) == (found in _SIZED), text, f"{act} takes a size, such as 512m")
    _require(
        found not in _HOARDS or _POINTS[point] in _STEPS, text, f"only a step takes memory, {point} does not"
    )
    _require(
        (seconds is not None) == (found in _TIMED) or size is not None,
        text,
        f"{act} takes {'a' if found in _TIMED else 'no'} time",
    )
    _require(
        (found is FaultAct.RESTART) == (who == HEAD) or (who == HEAD and found in _OF_HEAD),
        text,
        f"{act} cannot strike {who}",
    )
    times = [int(part[1:]) for part in more if re.fullmatch(r"x[1-9]\d*", part)]
    _require(found not in _HOARDS or "after" not in more, text, "memory is taken before a step")
    _require(len(times) + more.count("after") == len(more), text, f"{':'.join(more)!r} is not understood")
    _require(
        found is not FaultAct.FORGET or "after" not in more,
        text,
        "what is forgotten has no answer to come after",
    )
    return FaultOrder(
        who,
        _POINTS[point],
        int(nth),
        found,
        float(seconds[1]) * (0.001 if seconds[2] == "ms" else 1.0) if seconds else 0.0,
        "after" in more,
        times[0] if times else 1,
        only,
        int(size[1]) << (20 if size[2] == "m" else 30) if size else 0,
    )


def parse_all(text: str) -> tuple[FaultOrder, ...]:
    """Parse orders separated by semicolons; an empty text has none."""
    return tuple(parse(part) for part in text.split(";") if part.strip())


def _require(holds: bool, text: str, why: str) -> None:
    if not holds:
        raise ConfigurationError(f"{text!r} is not a valid fault order: {why}.", fix=f"Write {_FORM}.")


@dataclass(frozen=True, slots=True)
class Strike:
    """A strike of an order, proved by the file that was written before the act."""

    order: str
    worker: str
    pid: int
    #: Seconds since 1970.
    at: float
    #: What the process was about to do, or had just done.
    effect: str


class FaultOrders:
    """A directory that the driver and the TaskManagers share, with orders and strikes."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._seen: tuple[int, int] = (0, 0)
        self._orders: dict[str, FaultOrder] = {}

    def give(self, orders: Iterable[FaultOrder]) -> str:
        """Replace all orders by these; returns the name under which `struck` finds their strikes."""
        self.directory.mkdir(parents=True, exist_ok=True)
        name = uuid.uuid4().hex[:12]
        lines = "".join(f"{name}-{at} {order}\n" for at, order in enumerate(orders))
        unfinished = self.directory / f".{_ARMED}-{os.getpid()}"
        unfinished.write_text(lines, encoding="utf-8")
        unfinished.replace(self.directory / _ARMED)
        return name

    def orders(self) -> dict[str, FaultOrder]:
        """The present orders by id; read again only when they have changed."""
        try:
            status = (self.directory / _ARMED).stat()
            seen = (status.st_mtime_ns, status.st_ino)
            if seen != self._seen:
                lines = (self.directory / _ARMED).read_text(encoding="utf-8").splitlines()
                self._orders = {
                    name: parse(text) for name, _, text in (line.partition(" ") for line in lines)
                }
                self._seen = seen
        except FileNotFoundError:
            return {}
        return self._orders

    def claim(self, name: str, order: FaultOrder, strike: Strike) -> bool:
        """Record durably that an order strikes; False if it has struck often enough already."""
        for firing in range(order.times):
            try:
                file = os.open(
                    self.directory / f"struck-{name}-{firing}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600
                )
            except FileExistsError:
                continue
            said = {
                "order": strike.order,
                "worker": strike.worker,
                "pid": strike.pid,
                "at": strike.at,
                "effect": strike.effect,
            }
            with os.fdopen(file, "w", encoding="utf-8") as out:
                json.dump(said, out)
                out.flush()
                os.fsync(out.fileno())
            return True
        return False

    def struck(self, name: str = "") -> tuple[Strike, ...]:
        """The strikes of the orders given under a name, or of all orders; the earliest first."""
        found = []
        for path in self.directory.glob(f"struck-{name}*"):
            try:
                found.append(Strike(**json.loads(path.read_text(encoding="utf-8"))))
            except ValueError:
                continue  # being written at this moment
        return tuple(sorted(found, key=lambda strike: strike.at))


def order_book(settings: Settings) -> FaultOrders | None:
    """The fault orders, with those of the settings; None outside tests of recovery.

    Raises:
        ConfigurationError: faults are ordered without chaos, or chaos has no directory.
    """
    if not settings.chaos_enabled:
        if settings.chaos_faults or settings.chaos_directory:
            raise ConfigurationError(
                "Faults are ordered, but chaos is not enabled.",
                fix="Set spark.wallaby.chaos.enabled=true if this engine may be broken on purpose.",
                key="spark.wallaby.chaos.enabled",
            )
        return None
    if not settings.chaos_directory:
        raise ConfigurationError(
            "Chaos needs a directory that the driver and all TaskManagers share.",
            fix="Set spark.wallaby.chaos.directory.",
            key="spark.wallaby.chaos.directory",
        )
    book = FaultOrders(Path(settings.chaos_directory))
    book.give(parse_all(settings.chaos_faults))
    return book
