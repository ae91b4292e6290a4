"""Wallaby: a pipelined query engine on Spark that survives lost workers by write-ahead lineage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wallaby.version import __version__

if TYPE_CHECKING:
    from wallaby.enabling import disable, enable
    from wallaby.engine import Engine, attach
    from wallaby.result import Result

__all__ = ["Engine", "Result", "__version__", "attach", "disable", "enable"]

#: Where what users import lives. It is imported when it is asked for: `wallaby --help` needs no Spark.
_HOMES = {
    "Engine": "wallaby.engine",
    "Result": "wallaby.result",
    "attach": "wallaby.engine",
    "disable": "wallaby.enabling",
    "enable": "wallaby.enabling",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'wallaby' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - keeps the name out of this module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
