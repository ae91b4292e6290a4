"""What channels share is made once, by whoever comes first, and goes with the last who holds it."""

from __future__ import annotations

import gc
import threading

import pyarrow as pa
import pytest

from wallaby.operators.shared import SharedInputs


def test_two_threads_make_one_thing() -> None:
    shared, inputs = SharedInputs(), (object(),)
    begun, go_on = threading.Event(), threading.Event()
    made: list[str] = []
    given: list[object] = []

    def slow() -> str:
        begun.set()
        go_on.wait(10)
        made.append("slow")
        return "value"

    def fast() -> str:
        made.append("fast")
        return "another"

    first = threading.Thread(target=lambda: given.append(shared.of("key", inputs).get(slow)))
    holder = shared.of("key", inputs)
    first.start()
    assert begun.wait(10)
    second = threading.Thread(target=lambda: given.append(shared.of("key", inputs).get(fast)))
    second.start()
    go_on.set()
    first.join(10)
    second.join(10)
    assert made == ["slow"]
    assert given == ["value", "value"]
    assert holder.get(fast) == "value"


def test_other_keys_and_other_inputs_are_other_things() -> None:
    shared, one, other = SharedInputs(), pa.table({"a": [1]}), pa.table({"a": [1]})
    held = shared.of("key", (one,))
    assert shared.of("key", (one,)) is held
    assert shared.of("key", (other,)) is not held
    assert shared.of("another", (one,)) is not held
    assert held.is_of((one,))
    assert not held.is_of((other,))
    assert not held.is_of(())


def test_what_nobody_holds_is_made_again() -> None:
    shared, inputs = SharedInputs(), (object(),)
    made: list[int] = []

    def make() -> int:
        made.append(1)
        return len(made)

    assert shared.of("key", inputs).get(make) == 1
    gc.collect()
    assert shared.of("key", inputs).get(make) == 2


def test_who_fails_to_make_it_leaves_it_to_the_next() -> None:
    held = SharedInputs().of("key", ())

    def failing() -> int:
        raise ValueError("interrupted")

    with pytest.raises(ValueError, match="interrupted"):
        held.get(failing)
    assert held.get(lambda: 7) == 7
