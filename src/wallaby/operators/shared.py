"""Tables and indexes of side inputs that the channels of a stage in one process share.

A broadcast reaches every channel of a TaskManager as the same objects, and each channel would build the same index. The
first channel to need it makes it, and others wait for it meanwhile. A value lives only as long as a kernel holds it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")


class SharedValue(Generic[T]):
    """A value that is computed from inputs at the first request. It holds the inputs, so that their ids stay taken."""

    def __init__(self, inputs: tuple[object, ...]) -> None:
        self._inputs = inputs
        self._lock = threading.Lock()
        self._values: list[T] = []

    def is_of(self, inputs: Sequence[object]) -> bool:
        """Is it made from exactly these objects? They are immutable, so the same object has the same content."""
        return len(self._inputs) == len(inputs) and all(
            ours is theirs for ours, theirs in zip(self._inputs, inputs, strict=True)
        )

    def get(self, make: Callable[[], T]) -> T:
        """The value; it is computed now if it has not been before."""
        with self._lock:
            if not self._values:
                self._values.append(make())
            return self._values[0]


class SharedInputs:
    """The shared values of the kernels of one stage, by key and inputs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: WeakValueDictionary[Hashable, SharedValue[object]] = WeakValueDictionary()

    def of(self, key: Hashable, inputs: tuple[object, ...]) -> SharedValue[object]:
        """The value of this key and these inputs; it lives as long as it is referenced."""
        # A live entry holds its inputs, so their ids are not reused.
        full = (key, *map(id, inputs))
        with self._lock:
            found = self._made.get(full)
            if found is None:
                found = self._made[full] = SharedValue(inputs)
            return found
