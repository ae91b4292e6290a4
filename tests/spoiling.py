"""What may become of the files of a durable store that something else than the engine gets at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random


def _each(change: Callable[[bytes], bytes]) -> Callable[[Sequence[Path]], None]:
    def spoil(files: Sequence[Path]) -> None:
        for file in files:
            file.write_bytes(change(file.read_bytes()))

    return spoil


def _swap(files: Sequence[Path]) -> None:
    """Each gets what another one had."""
    data = [file.read_bytes() for file in files]
    for file, other in zip(files, (*data[1:], data[0]), strict=True):
        file.write_bytes(other)


def _change(data: bytes) -> bytes:
    """One bit, in the values of the last batch if it has a hundred bytes of them."""
    at = max(len(data) - 100, len(data) // 2)
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


SPOILS: dict[str, Callable[[Sequence[Path]], None]] = {
    "cut": _each(lambda data: data[: len(data) // 2]),
    "emptied": _each(lambda _: b""),
    "garbage": _each(lambda data: Random(0).randbytes(len(data))),
    "text": _each(lambda _: b'{"bodies": [], "edges": []}'),
    "changed": _each(_change),
    "swapped": _swap,
}
