"""docs/stability.md lists the public names, and each of them says what it is."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import wallaby

PAGE = (Path(__file__).parent.parent / "docs" / "stability.md").read_text(encoding="utf-8")
STABLE = PAGE.split("## Stable")[1].split("## Not stable")[0]
NOT_STABLE = PAGE.split("## Not stable")[1]
#: Public names of classes that the page says are not stable.
OTHERS: dict[str, set[str]] = {"Engine": {"inspection", "tolerance"}, "Result": {"plan"}, "LivePage": set()}


def listed(kind: str) -> set[str]:
    """The methods and attributes that the page lists for a class."""
    (found,) = re.findall(rf"^- `{kind}`: ((?:.|\n  )+)", STABLE, re.MULTILINE)
    return set(re.findall(r"`(\w+)`", found))


def public_methods(kind: type) -> dict[str, object]:
    """What a class has under names without an underscore."""
    return {name: value for name, value in inspect.getmembers(kind) if not name.startswith("_")}


def test_the_page_lists_exactly_the_public_names() -> None:
    assert set(re.findall(r"^\| `wallaby\.(\w+)` \|", STABLE, re.MULTILINE)) == set(wallaby.__all__)


def test_every_public_name_can_be_imported() -> None:
    assert all(getattr(wallaby, name) is not None for name in wallaby.__all__)
    assert set(wallaby.__all__) <= set(dir(wallaby))
    with pytest.raises(AttributeError, match="nobody"):
        wallaby.__getattr__("nobody")


@pytest.mark.parametrize("kind", ["Engine", "Result", "LivePage"])
def test_the_page_lists_exactly_the_public_methods(kind: str) -> None:
    found = public_methods(getattr(wallaby, kind))
    unlisted = set(found) - listed(kind)
    assert unlisted <= OTHERS[kind]
    assert all(f"`{kind}.{name}`" in NOT_STABLE for name in OTHERS[kind])
    attributes = listed(kind) - set(found)
    assert all(f"{name}:" in (inspect.getdoc(getattr(wallaby, kind)) or "") for name in attributes)


@pytest.mark.parametrize("kind", ["Engine", "Result", "LivePage", "RunStats", "QueryEvent", "WorkerInfo"])
def test_every_public_method_begins_with_a_sentence(kind: str) -> None:
    for name, method in public_methods(getattr(wallaby, kind)).items():
        if inspect.isfunction(method) or isinstance(method, property):
            summary = (inspect.getdoc(method) or "").partition("\n")[0]
            assert summary.endswith((".", ":", "?")), name
