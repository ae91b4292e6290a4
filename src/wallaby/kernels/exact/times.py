"""Dates and timestamps."""

from __future__ import annotations

from typing import Final

from wallaby.kernels.exact.arrow_function import ArrowFunction

FUNCTIONS: Final[tuple[ArrowFunction, ...]] = ()
