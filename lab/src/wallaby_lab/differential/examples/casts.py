"""Casts between types, and what Catalyst does in their place."""

from __future__ import annotations

from typing import Final

_TARGETS: Final = (
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(5,2)", "decimal(18,6)"),
    *("decimal(38,0)", "decimal(38,18)", "string", "binary", "date", "timestamp", "timestamp_ntz"),
)
_SOURCES: Final = {
    **dict.fromkeys(_TARGETS[:11], ("number", "digits")),
    "boolean": ("number", "digits"),
    "string": ("any",),
    "binary": ("string",),
    "date": ("moment", "timestamp", "timestamp_ntz"),
    "timestamp": ("moment", "date", "timestamp_ntz"),
    "timestamp_ntz": ("moment", "date", "timestamp"),
}

EXAMPLES: Final = {
    "Cast": tuple(
        f"{how}({{{source}}} as {target})"
        for target, sources in _SOURCES.items()
        for source in sources
        for how in ("cast", "try_cast")
    ),
}
