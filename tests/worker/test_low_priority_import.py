"""Imports behind those who work: in a thread of lower priority, and nothing of it stays."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from wallaby.worker.low_priority_import import NICENESS, import_gently


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.syspath_prepend(tmp_path)
    name = f"imported_in_{os.getpid()}"
    (tmp_path / f"{name}.py").write_text(
        "import os, threading\nniceness = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())\n"
    )
    (tmp_path / "broken_module.py").write_text("raise LookupError('not here')\n")
    return name


@pytest.mark.skipif(sys.platform != "linux", reason="priorities belong to processes elsewhere")
def test_a_module_is_imported_at_a_lower_priority_than_that_of_who_asks(module: str) -> None:
    before = os.getpriority(os.PRIO_PROCESS, 0)
    import_gently(module)
    assert sys.modules.pop(module).niceness == max(before, NICENESS)
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


def test_what_an_import_raises_is_raised(module: str) -> None:
    assert module
    with pytest.raises(LookupError, match="not here"):
        import_gently("broken_module")
