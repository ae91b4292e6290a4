"""Format quantities for people."""

from __future__ import annotations

_BYTES = ("B", "KiB", "MiB", "GiB", "TiB")


def size(count: float) -> str:
    """Bytes: 12 B, 3.4 MiB."""
    at = 0
    while count >= 1024 and at < len(_BYTES) - 1:
        count, at = count / 1024, at + 1
    return f"{count:.0f} {_BYTES[at]}" if at == 0 or count >= 100 else f"{count:.1f} {_BYTES[at]}"


def number(count: int) -> str:
    """A whole number with thousands separators: 6,001,215."""
    return f"{count:,}"


def duration(seconds: float) -> str:
    """A time: 12 ms, 3.41 s, 2 min 5 s."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms" if seconds >= 0.0095 else f"{seconds * 1000:.1f} ms"
    if seconds < 120:
        return f"{seconds:.2f} s"
    return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def counted(count: int, noun: str) -> str:
    """1 task, 2 tasks."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
