"""Files that commands of the lab write after long measurements: checked before, written at once."""

from __future__ import annotations

from pathlib import Path

from wallaby.commands.terminal import open_for_writing


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically; an error names the file."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    with open_for_writing(unfinished) as file:
        file.write(text)
    unfinished.replace(path)


def require_writable(path: Path) -> None:
    """Check that `path` can be written, before hours are spent on its content."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    open_for_writing(unfinished).close()
    unfinished.unlink()
