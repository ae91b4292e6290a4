"""Label and field selectors, as lists, watches and deletions of collections use them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from wallaby_lab.kubernetes.status import StatusError

_SET = re.compile(r"^\s*([\w./-]+)\s+(in|notin)\s+\(([^)]*)\)\s*$")
_EQUALITY = re.compile(r"^\s*([\w./-]+)\s*(==|=|!=)\s*([\w./-]*)\s*$")
_PRESENCE = re.compile(r"^\s*(!?)\s*([\w./-]+)\s*$")
#: A comma outside parentheses.
_COMMA = re.compile(r",(?![^(]*\))")
#: The fields by which pods are selected here. A real server knows a few more.
_FIELDS: Final = ("metadata.name", "metadata.namespace", "status.phase", "spec.nodeName")

Matches = Callable[[Mapping[str, str]], bool]


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects a request is about; everything if both texts are empty."""

    labels: tuple[Matches, ...] = ()
    fields: tuple[Matches, ...] = ()

    @staticmethod
    def parse(labels: str = "", fields: str = "") -> Selection:
        """Read both selectors.

        Raises:
            StatusError: 400, for what is no selector, or a field that cannot be selected by.
        """
        return Selection(
            tuple(_requirement(part) for part in _parts(labels)),
            tuple(_of_field(part) for part in _parts(fields)),
        )

    def matches(self, found: Mapping[str, Any]) -> bool:
        """Is an object one of those?"""
        labels = found["metadata"].get("labels") or {}
        fields = {field: _at(found, field) for field in _FIELDS}
        return all(of(labels) for of in self.labels) and all(of(fields) for of in self.fields)


def _parts(text: str) -> list[str]:
    return [part for part in _COMMA.split(text) if part.strip()]


def _requirement(text: str) -> Matches:
    """One requirement of labels. As in Kubernetes, `!=` and `notin` also match objects without the label."""
    if match := _SET.match(text):
        key, operator, listed = match.groups()
        values = frozenset(value.strip() for value in listed.split(","))
        if operator == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if match := _EQUALITY.match(text):
        key, operator, value = match.groups()
        if operator == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if match := _PRESENCE.match(text):
        absent, key = match.groups()
        return lambda labels: (key in labels) != bool(absent)
    raise StatusError(400, "BadRequest", f"unable to parse requirement: {text!r}")


def _of_field(text: str) -> Matches:
    match = _EQUALITY.match(text)
    if match is None or match[1] not in _FIELDS:
        raise StatusError(400, "BadRequest", f"field label not supported: {text!r}")
    return _requirement(text)


def _at(found: Mapping[str, Any], path: str) -> str:
    value: Any = found
    for name in path.split("."):
        value = (value or {}).get(name)
    return str(value or "")
