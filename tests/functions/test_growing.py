"""Functions whose results may be much larger than their arguments: what they give, and what they refuse."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.trees import SETTINGS, call, column, literal, value_of

from wallaby.errors import MemoryLimitError
from wallaby.functions.registry import SCALARS
from wallaby.functions.spread import Spreads, grows
from wallaby.functions.text import letters, patterns
from wallaby.relations.expression import Call, Expression
from wallaby.relations.types import INTEGER, LONG, STRING, array
from wallaby.statements.connection import DuckDbSession, grown_bytes_max

S, T, N, A = column(1, STRING), column(2, STRING), column(3, INTEGER), column(4, array(STRING))
X, SOFAR, DONE = column(7, STRING), column(8, STRING), column(9, STRING)


def text(value: str) -> Expression:
    return literal(value, STRING)


def times(value: str, count: int) -> Call:
    return call("repeat", STRING, text(value), literal(count, INTEGER))


def counted(first: Expression, last: Expression) -> Call:
    return call("sequence", array(LONG), first, last)


def collected(elements: Expression, begin: Expression, step: Expression) -> Call:
    merge = Call("lambda", (step, SOFAR, X), STRING, nullable=True)
    finish = Call("lambda", (DONE, DONE), STRING, nullable=True)
    return call("aggregate", STRING, elements, begin, merge, finish)


def computed(value: int) -> Call:
    """A number that is not simple to write."""
    return call("add", LONG, literal(value, LONG), literal(0, LONG))


LARGEST_BYTES = grown_bytes_max(SETTINGS)
DOUBLED = call("concat", STRING, SOFAR, SOFAR)


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        (call("replace", STRING, times("ab", 3), text("b"), times("xy", 2)), "axyxyaxyxyaxyxy"),
        (call("replace", STRING, text("abc"), text(""), times("xy", 2)), "abc"),
        (call("array_join", STRING, literal(("a", None, "b"), array(STRING)), times("-", 2)), "a--b"),
        (
            call("array_join", STRING, literal(("a", None), array(STRING)), times("-", 2), times("n", 2)),
            "a--nn",
        ),
        (call("array_join", STRING, literal((), array(STRING)), times("-", 2)), ""),
        (counted(computed(1), computed(4)), [1, 2, 3, 4]),
        (collected(counted(computed(1), computed(4)), text("ab"), DOUBLED), "ab" * 16),
        (call("array_repeat", array(STRING), times("a", 2), call("cast", INTEGER, computed(3))), ["aa"] * 3),
        (call("pad_left", STRING, times("a", 2), call("cast", INTEGER, computed(5)), times("-", 1)), "---aa"),
    ],
)
def test_what_is_checked_gives_what_it_gave(
    expression: Expression, wanted: object, session: DuckDbSession
) -> None:
    assert value_of(expression, session) == wanted


@pytest.mark.parametrize(
    "expression",
    [
        call("repeat", STRING, times("a", 1000), literal(1_000_000, INTEGER)),
        call("replace", STRING, times("ab", 100_000), text("b"), times("xy", 100_000)),
        counted(computed(1), computed(1_000_000_000)),
        counted(computed(1), computed(LARGEST_BYTES // 8 + 1)),
        call("array_repeat", array(LONG), computed(7), literal(LARGEST_BYTES // 16 + 1, INTEGER)),
        call(
            "array_join",
            STRING,
            counted_texts := call("array_repeat", array(STRING), text(""), literal(100_000, INTEGER)),
            times("-", 100_000),
        ),
        collected(counted_texts, text("ab"), DOUBLED),
        call("space", STRING, literal(2_000_000_000, INTEGER)),
        call("pad_left", STRING, text("a"), literal(2_000_000_000, INTEGER), text("-")),
        call(
            "array_insert",
            array(STRING),
            literal(("a",), array(STRING)),
            literal(2_000_000_000, INTEGER),
            text("b"),
        ),
    ],
)
def test_a_row_that_would_make_too_much_is_refused(expression: Expression, session: DuckDbSession) -> None:
    with pytest.raises(MemoryLimitError, match="A single row produces"):
        value_of(expression, session)


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        (call("upper", STRING, S), False),
        (call("concat", STRING, S, T, S), False),
        (call("replace", STRING, S, text("a"), text("bc")), False),
        (call("replace", STRING, S, text("a"), T), True),
        (call("replace", STRING, S, text("a"), text("b" * 100)), True),
        (call("regexp_replace", STRING, S, text("[ab]"), text("-")), False),
        (call("regexp_replace", STRING, S, text("(a)"), text("$1" * 100)), True),
        (call("repeat", STRING, S, literal(3, INTEGER)), False),
        (call("repeat", STRING, S, N), True),
        (call("array_join", STRING, A, text(", ")), False),
        (call("array_join", STRING, A, T), True),
        (call("length", INTEGER, call("array_join", STRING, A, T)), True),
        (collected(A, text(""), call("concat", STRING, SOFAR, X)), False),
        (collected(A, text(""), DOUBLED), True),
        (call("concat", STRING, *[S] * 50), True),
    ],
)
def test_only_what_may_be_much_larger_than_its_columns_grows(expression: Expression, wanted: bool) -> None:
    assert grows(expression) is wanted


def test_a_function_that_declares_nothing_is_unlimited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCALARS, "upper", replace(SCALARS["upper"], size=None))
    assert Spreads().of(call("upper", STRING, S)) is None


@pytest.mark.parametrize("block", [1, 2, 7])
@pytest.mark.parametrize("value", ["", " ", "aB  ςΣ x", "ßa bC ", "  ΑΣ ΑΣ", "xxaxx a", "😀a ba"])
def test_long_texts_are_processed_a_part_at_a_time(
    block: int, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their words, letters and matches would take many times their memory; parts give what the whole gives."""

    def results() -> list[str]:
        replaced = [patterns.replace(value, pattern, "<$0$1>") for pattern in ("(a)", "( +)", "(x*)a")]
        return [
            letters.initcap(value),
            letters.mask(value, "X", "x", "n", "") if value.isascii() else "",
            *replaced,
        ]

    whole = results()
    monkeypatch.setattr(letters, "_BLOCK", block)
    monkeypatch.setattr(patterns, "_LONG", block)
    assert results() == whole
