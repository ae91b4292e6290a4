"""The Lua scripts, one for each protocol action, and how they are loaded.

A script consists of `_common.lua` and its own text. Redis runs it alone and to its end, but undoes nothing, so each
script makes all its checks before its first write.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from wallaby.gcs.connection import Script


@cache
def load(name: str) -> Script:
    """The script of an action, by the action's name."""
    folder = files(__name__)
    common, own = ((folder / f"{part}.lua").read_text(encoding="utf-8") for part in ("_common", name))
    return Script.of(name, common + own)
