"""Effects carry the types of their answers, and the generators of the protocol take them with these types."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

import wallaby
from wallaby.coordinator import effects as coordinating
from wallaby.lineage import effects as protocol
from wallaby.lineage.effects import Effect, FailPoint, PushReply, ask
from wallaby.lineage.names import WorkerId
from wallaby.node import effects as working

SOURCES = Path(wallaby.__file__).parent
#: What hands on whatever effect it is given; it does not look at the answer.
HANDS_ON = {("lineage/effects.py", "ask"), ("node/session.py", "_during")}


def effects() -> list[type[Effect[object]]]:
    """Every effect that there is."""
    found = [value for module in (protocol, working, coordinating) for value in vars(module).values()]
    return [
        each for each in found if isinstance(each, type) and issubclass(each, Effect) and each is not Effect
    ]


@pytest.mark.parametrize("effect", effects(), ids=lambda effect: effect.__name__)
def test_every_effect_says_what_its_answer_is_and_where_it_fails(effect: type[Effect[object]]) -> None:
    (base,) = [base for base in effect.__orig_bases__ if base.__origin__ is Effect]  # type: ignore[attr-defined]
    assert len(get_args(base)) == 1
    assert isinstance(getattr(effect, "point", None), FailPoint) or "point" in effect.__slots__


def test_an_answer_comes_back_to_whoever_asked() -> None:
    push = protocol.Push(FailPoint.DELIVER, 1, WorkerId("w0"), WorkerId("w1"), ())
    asking = ask(push)
    assert next(asking) is push
    with pytest.raises(StopIteration) as answered:
        asking.send(PushReply(accepted=True))
    assert answered.value.value == PushReply(accepted=True)


def untyped_answers(module: Path) -> Iterator[str]:
    """The places of a module where the answer to a bare `yield` is used: it would be an `Any`."""
    for function in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        name = str(module.relative_to(SOURCES))
        if not isinstance(function, ast.FunctionDef) or (name, function.name) in HANDS_ON:
            continue
        statements = {id(node.value) for node in ast.walk(function) if isinstance(node, ast.Expr)}
        for node in ast.walk(function):
            if isinstance(node, ast.Yield) and id(node) not in statements:
                yield f"{name}:{node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize("room", ["lineage", "coordinator", "node", "worker", "head"])
def test_an_answer_that_is_used_has_been_asked_for_with_its_type(room: str) -> None:
    assert [
        place for module in sorted((SOURCES / room).rglob("*.py")) for place in untyped_answers(module)
    ] == []
