"""Regular expressions."""

from __future__ import annotations

from typing import Final

from wallaby.catalyst.entry import unsupported

_REGEX: Final = "Java's regular expressions differ from those of the kernels"

ENTRIES: Final = (
    unsupported("RLike", _REGEX, "use LIKE, if the pattern allows it"),
    unsupported("RegExpExtract", _REGEX),
    unsupported("RegExpReplace", _REGEX),
)
