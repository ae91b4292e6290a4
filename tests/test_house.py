"""The house rules find what they are there for; `make check` applies them to the project itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.check_house import (
    LINES_MAX,
    LISTS,
    PLAIN,
    ROOT,
    anchors,
    check_commits,
    check_folders,
    check_glossary,
    check_length,
    check_links,
    named_types,
    private_names,
    public_classes,
)

PAGE = "# A page: its `name`\n\n```\n# no heading\n[no](link.md)\n```\n\n## Two words\n"


@pytest.mark.parametrize(
    "link",
    ["#two-words", "README.md", "docs/style.md#names", "https://example.org/x#y", "docs/decisions"],
)
def test_a_link_that_leads_somewhere(link: str) -> None:
    assert list(check_links(ROOT / "x.md", f"{PAGE}See [this\none]({link}).")) == []


@pytest.mark.parametrize(
    ("link", "what"),
    [
        ("#no-heading", "heading"),
        ("#three-words", "heading"),
        ("docs/nothing.md", "file"),
        ("docs/style.md#nothing", "heading"),
    ],
)
def test_a_link_that_leads_nowhere(link: str, what: str) -> None:
    (problem,) = check_links(ROOT / "x.md", f"{PAGE}See [this]({link}).")
    assert problem == f"x.md: links to {link}, and there is no such {what}"


def test_a_commit_that_a_page_names_is_in_the_history() -> None:
    history = ("0a1b2c3d4e5f", "f76f157aaaaa")
    page = (
        "Measured on f76f157, sources 287ca80310ed, worker w1-abe3ccea, 1234567 rows.\n\n```\n9f9f9f9\n```\n"
    )
    assert list(check_commits(ROOT / "x.md", page, history)) == []
    (problem,) = check_commits(ROOT / "x.md", "on commit 511d5c" + "4", history)
    assert problem == "x.md: names the commit 511d5c" + "4, which the history does not have"


def test_headings_as_they_are_linked_to() -> None:
    assert anchors(PAGE) == {"a-page-its-name", "two-words"}


def in_room(*names: str) -> tuple[dict[str, list[Path]], dict[str, str]]:
    """The plain classes and some others, each defined once, all in one room."""
    everything = (*names, *PLAIN)
    return {name: [Path("x.py")] for name in everything}, dict.fromkeys(everything, "node")


def test_every_public_class_of_the_rooms_is_in_the_glossary() -> None:
    page = "| class | meaning |\n|---|---|\n| `Actor`, `Spool` | a generator; outputs |\n"
    assert list(check_glossary(*in_room("Actor", "Spool"), page)) == []
    (missing,) = check_glossary(*in_room("Actor", "Spool", "Tenure"), page)
    assert "says nothing of Tenure (node)" in missing
    (stale,) = check_glossary(*in_room("Actor"), page)
    assert "Spool is no public class or type" in stale


def test_a_plain_word_needs_no_entry_and_gets_none() -> None:
    (twice,) = check_glossary(*in_room(), "| `Head` | the driver |\n")
    assert "explains Head" in twice


def test_a_class_shares_its_name_with_no_other() -> None:
    classes, rooms = in_room("Actor")
    classes["Actor"].append(Path("y.py"))
    classes["Reader"] = [Path("u.py"), Path("v.py")]
    actor, reader = check_glossary(classes, rooms, "| `Actor` | a generator |\n")
    assert actor == "Actor is the name of several classes: x.py, y.py"
    assert reader == "Reader is the name of several classes: u.py, v.py"


def test_a_folder_of_sources_is_no_long_list() -> None:
    modules = [Path(f"lab/src/room/{number}.py") for number in range(20)]
    beside = [
        Path("lab/src/room/__init__.py"),
        Path("lab/src/room/q01.sql"),
        Path("lab/src/room/java/X.java"),
    ]
    assert list(check_folders([*modules, *beside])) == []
    for more in ("more.py", "More.java", "more.lua"):
        (long,) = check_folders([*modules, Path("lab/src/room", more)])
        assert long == "lab/src/room: 21 source files, at most 20: divide the folder"


def test_the_scripts_of_the_control_store_are_a_list_on_purpose() -> None:
    scripts = [Path(f"src/wallaby/gcs/scripts/{number}.lua") for number in range(30)]
    assert list(check_folders(scripts)) == []
    assert all((ROOT / folder).is_dir() for folder in LISTS)


@pytest.mark.parametrize("name", ["x.py", "X.java", "x.lua"])
def test_a_long_source_file_has_two_ideas(name: str) -> None:
    path = ROOT / "src" / "room" / name
    assert list(check_length(path, "\n" * LINES_MAX)) == []
    (long,) = check_length(path, "\n" * (LINES_MAX + 1))
    assert long == f"src/room/{name}: 501 lines, at most 500: give each idea its own file"


def test_folders_of_tests_and_tools_are_no_long_lists_either() -> None:
    modules = [Path(f"tests/room/test_{number}.py") for number in range(21)]
    (long,) = check_folders(
        [*modules, Path("tests/room/conftest.py"), *(Path(f"docs/{n}.py") for n in range(30))]
    )
    assert long == "tests/room: 21 source files, at most 20: divide the folder"


def test_public_classes_are_those_at_the_top_without_an_underscore() -> None:
    assert public_classes("class A:\n    class B: ...\nclass _C: ...\ndef d(): ...\n") == ("A",)


def test_private_names_of_other_objects_are_found() -> None:
    own = "class A(B):\n    def f(self): return self._x, super()._y(), df._jdf, self.__dict__\n"
    assert list(private_names(own)) == []
    others = (
        "from wallaby.engine import _attached\nengine._started = engine._head._queries\ndel engine._started\n"
    )
    assert sorted(private_names(others)) == [
        (1, "_attached"),
        (2, "_head"),
        (2, "_queries"),
        (2, "_started"),
        (3, "_started"),
    ]


def test_types_that_a_module_names_are_found() -> None:
    variables = "T = TypeVar('T')\nAnswer = TypeVar('Answer')\nMAX = 3\n_Own = int\n"
    types = "Id = NewType('Id', str)\nBody: Any = int | None\n"
    assert named_types(variables + types) == ("Id", "Body")
