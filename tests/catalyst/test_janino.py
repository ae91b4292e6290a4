"""Which Java files are compiled together; Spark compiles them in the tests of whatever they do."""

from __future__ import annotations

import re

import pytest

from wallaby.catalyst.janino import joined, sources

A = """package wallaby;

import java.util.List;
import java.util.Map;

/** See C.java. */
public class A {
    B b; // no C
}
"""
B = """package wallaby;

import java.util.List;

public class B {
    D d;
}
"""


def test_a_class_is_joined_with_those_that_it_uses() -> None:
    texts = {
        "A": A,
        "B": B,
        "C": "public class C {}\n",
        "D": "package wallaby;\npublic class D {\n    A a;\n}\n",
    }
    text = joined(texts, "A")
    assert re.findall(r"class (\w)", text) == ["A", "B", "D"]
    assert re.findall(r"^(?:package|import).*", text, re.M) == [
        "package wallaby;",
        "import java.util.List;",
        "import java.util.Map;",
    ]


@pytest.mark.parametrize(
    ("room", "first", "count"),
    [
        ("catalyst", {"PlanWriter"}, 9),
        ("above", {"SparkAbove"}, 9),
        ("spark", {"ConnectProgress", "LiveTab", "QueryJobs", "QuietLog"}, 4),
    ],
)
def test_every_file_is_compiled_and_none_twice(room: str, first: set[str], count: int) -> None:
    texts = sources(f"wallaby.{room}")
    found = [name for each in first for name in re.findall(r"^public class (\w+)", joined(texts, each), re.M)]
    assert len(found) == len({*found}) == count
    assert texts.keys() - {*found} <= {"SparkVersions"}


@pytest.mark.parametrize("room", ["catalyst", "above", "spark"])
def test_the_files_of_a_room_mean_the_same_by_a_name(room: str) -> None:
    imported = {
        line
        for text in sources(f"wallaby.{room}").values()
        for line in re.findall(r"^import (.+);", text, re.M)
    }
    names = [line.rpartition(".")[2] for line in imported]
    assert len(names) == len({*names})
