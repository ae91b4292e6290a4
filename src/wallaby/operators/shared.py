"""What the channels of a stage in one process make of the same inputs, made once: tables and indexes of side inputs.

A broadcast reaches every channel of a TaskManager as the same objects, and each channel would build the same index.
Whoever asks first makes it, and whoever asks meanwhile waits for it. Nothing is kept for its own sake: what no kernel
holds any more is gone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")


class SharedValue(Generic[T]):
    """One thing, made of inputs when it is first asked for. It holds them, so that no others take their place."""

    def __init__(self, inputs: tuple[object, ...]) -> None:
        self._inputs = inputs
        self._lock = threading.Lock()
        self._values: list[T] = []

    def is_of(self, inputs: Sequence[object]) -> bool:
        """Is it made of these very objects? They are immutable, so the same object is the same content."""
        return len(self._inputs) == len(inputs) and all(
            ours is theirs for ours, theirs in zip(self._inputs, inputs, strict=True)
        )

    def get(self, make: Callable[[], T]) -> T:
        """What was made, or what is made now."""
        with self._lock:
            if not self._values:
                self._values.append(make())
            return self._values[0]


class SharedInputs:
    """What the kernels of one stage have made, by what it is and what it is made of."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: WeakValueDictionary[Hashable, SharedValue[object]] = WeakValueDictionary()

    def of(self, key: Hashable, inputs: tuple[object, ...]) -> SharedValue[object]:
        """The one thing of this key and these inputs; it lives as long as somebody holds it."""
        # A living entry holds its inputs, so their identities are theirs alone.
        full = (key, *map(id, inputs))
        with self._lock:
            found = self._made.get(full)
            if found is None:
                found = self._made[full] = SharedValue(inputs)
            return found
