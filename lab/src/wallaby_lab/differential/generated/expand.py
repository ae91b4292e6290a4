"""Expand examples to expressions: every placeholder becomes a column of each of its kinds, or a constant."""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random
from typing import Final

from wallaby.errors import InvalidArgumentError
from wallaby_lab.differential.generated.tables import LETTERS
from wallaby_lab.differential.generated.values import CLASSES, COLUMNS, literal

_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
_COLUMN: Final = re.compile(rf"\b({'|'.join(sorted(COLUMNS, key=len, reverse=True))})_[{LETTERS}]\b")
_MIXED: Final = 6
_CONSTANTS: Final = 2


@dataclass(frozen=True, slots=True)
class Expression:
    """A SQL expression that uses an entry."""

    entry: str
    sql: str

    @property
    def is_query(self) -> bool:
        """Is it a whole query over `{table}`?"""
        return "{table}" in self.sql


def expand(entry: str, example: str, seed: int) -> tuple[Expression, ...]:
    """The expressions of an example, in an order that depends only on the arguments."""
    if "{table}" in example:
        return (Expression(entry, example),)
    slots = _PLACEHOLDER.findall(example)
    unknown = [slot for slot in slots if slot not in CLASSES]
    if unknown:
        raise InvalidArgumentError(
            f"The example {example!r} of {entry} has a placeholder {unknown[0]!r} that means nothing.",
            fix=f"Choose one of: {', '.join(CLASSES)}.",
        )
    random = Random(f"{seed} {example}")
    found = [_filled(example, kinds) for kinds in _kinds(slots, random)]
    for place in range(len(slots)):
        for number in range(_CONSTANTS + 1):
            kinds = [random.choice(CLASSES[slot]) for slot in slots]
            column = COLUMNS[kinds[place]]
            draw = random.choice((column.tame, column.wild))
            value = None if number == _CONSTANTS else draw(random)
            found.append(_filled(example, kinds, {place: literal(value, column)}))
    return tuple(Expression(entry, sql) for sql in dict.fromkeys(found))


def _kinds(slots: list[str], random: Random) -> list[list[str]]:
    """The kind of each placeholder for each expression: first equal within a class, then some mixtures."""
    most = max((len(CLASSES[slot]) for slot in slots), default=1)
    alike = [[CLASSES[slot][number % len(CLASSES[slot])] for slot in slots] for number in range(most)]
    several = any(len(CLASSES[slot]) > 1 and slots.count(slot) > 1 for slot in slots)
    mixed = [[random.choice(CLASSES[slot]) for slot in slots] for _ in range(_MIXED if several else 0)]
    return alike + mixed


def _filled(example: str, kinds: list[str], constants: dict[int, str] | None = None) -> str:
    used: dict[str, int] = {}
    place = -1

    def fill(_: re.Match[str]) -> str:
        nonlocal place
        place += 1
        if constants and place in constants:
            return constants[place]
        kind = kinds[place]
        used[kind] = used.get(kind, -1) + 1
        return f"{kind}_{LETTERS[used[kind] % len(LETTERS)]}"

    return _PLACEHOLDER.sub(fill, example)


def arguments_of(sql: str) -> tuple[str, tuple[str, ...]] | None:
    """An expression as a template with a placeholder for each column, and the columns' kinds; None without columns."""
    kinds: list[str] = []

    def place(match: re.Match[str]) -> str:
        kinds.append(match[1])
        return f"{{{len(kinds) - 1}}}"

    template = _COLUMN.sub(place, sql.replace("{", "{{").replace("}", "}}"))
    return (template, tuple(kinds)) if kinds else None
