"""ARCHITECTURE.md shows the house as it is: every room, every arrow, every layer."""

from __future__ import annotations

import pytest

from tools.rooms import ARCHITECTURE, architecture, calls, drawn_calls, drawn_rooms, rooms

PAGE = ARCHITECTURE.read_text(encoding="utf-8")


def test_the_layers_are_those_of_the_contract() -> None:
    assert architecture() == PAGE, "run make pages"


def test_every_arrow_is_an_import() -> None:
    drawn = drawn_calls(PAGE)
    assert len(drawn) > 15
    assert drawn <= calls("wallaby")


def test_every_box_is_a_room() -> None:
    boxes = drawn_rooms(PAGE)
    assert len(boxes) > 10
    assert all(name == room for name, room in boxes)
    assert {room for _, room in boxes} <= rooms("wallaby")


@pytest.mark.parametrize("package", ["wallaby", "wallaby_lab"])
def test_every_room_is_described(package: str) -> None:
    listed = PAGE.split("## Rooms")[1].split("Imports point")[0]
    described = {word.removesuffix("/").removesuffix(".py") for word in listed.split()}
    assert rooms(package) <= described
