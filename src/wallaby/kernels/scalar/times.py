"""Timestamps and time zones."""

from __future__ import annotations

from wallaby.kernels.scalar.function import Function

FUNCTIONS: dict[str, Function] = {}
