"""Find the lines of the code under test that access what threads share: attributes, and containers in them.

A preemption elsewhere changes nothing that another thread could see, so schedules with few preemptions are planned at
these lines only. Accesses are read from byte code, because the source on disk is not that of a mutant.
"""

from __future__ import annotations

import dis
from dataclasses import dataclass
from functools import cache
from types import CodeType

#: Methods that change the container that they belong to.
_CHANGING = frozenset(
    {"add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popleft", "remove"}
    | {"setdefault", "update"}
)
_STORES = frozenset({"STORE_ATTR", "DELETE_ATTR"})
_OF_ENTRIES = frozenset({"STORE_SUBSCR", "DELETE_SUBSCR"})
_NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Touch:
    """The names of attributes that one line reads, and of those that it, or whose entries it, writes."""

    reads: frozenset[str] = _NOTHING
    writes: frozenset[str] = _NOTHING

    @property
    def names(self) -> frozenset[str]:
        """The attributes that it reads or writes."""
        return self.reads | self.writes


_NO_TOUCH = Touch()


def touch_of(code: CodeType, line: int) -> Touch:
    """The accesses of a line of a function."""
    return _touches_of(code).get(line, _NO_TOUCH)


@cache
def _touches_of(code: CodeType) -> dict[int, Touch]:
    reads: dict[int, set[str]] = {}
    writes: dict[int, set[str]] = {}
    changing: set[int] = set()
    for step in dis.get_instructions(code):
        line = step.positions.lineno if step.positions is not None else None
        if line is None:
            continue
        if step.opname == "LOAD_ATTR" and "NULL" not in step.argrepr:  # with it, a method is called
            reads.setdefault(line, set()).add(step.argval)
        elif step.opname in _STORES:
            writes.setdefault(line, set()).add(step.argval)
        if step.opname in _OF_ENTRIES or step.argval in _CHANGING:
            changing.add(line)
    for line in changing:
        writes.setdefault(line, set()).update(reads.get(line, ()))
    return {
        line: Touch(frozenset(reads.get(line, ())), frozenset(writes.get(line, ())))
        for line in reads.keys() | writes.keys()
    }
