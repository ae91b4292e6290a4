"""Keep a TaskManager from loading pandas, which Arrow imports to recognize pandas objects.

Arrow does so when its first array is made, if pandas is installed, and does not look again. A TaskManager has no pandas
objects, and the import would take 45 MiB of each TaskManager: 30 of objects and 15 of code.
"""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

import pyarrow as pa


class _Absent(importlib.abc.MetaPathFinder):
    """An import hook that pretends that pandas is not installed."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the interface's
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Hide pandas; other modules are found as usual."""
        if fullname == "pandas":
            raise ModuleNotFoundError("Arrow does without pandas here.", name=fullname)
        return None


def leave_pandas_out() -> None:
    """Let Arrow look for pandas now, and not find it. Later imports find it, including that of `to_pandas`."""
    absent = _Absent()
    sys.meta_path.insert(0, absent)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(absent)
