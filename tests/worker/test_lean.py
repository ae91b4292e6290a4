"""A TaskManager does without pandas, and whoever wants it still gets it."""

from __future__ import annotations

import subprocess
import sys

import pytest

_SCRIPT = """
import sys
import numpy as np
import pyarrow as pa
from wallaby.worker.memory.lean import leave_pandas_out
if {out}:
    leave_pandas_out()
table = pa.table({{"n": np.arange(3)}})
print("pandas" in sys.modules)
print(table.to_pandas()["n"].sum(), "pandas" in sys.modules)
"""


def _said(*, out: bool) -> list[str]:
    found = subprocess.run(
        [sys.executable, "-c", _SCRIPT.format(out=out)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return found.stdout.split()


def test_arrow_does_not_import_pandas_once_it_was_left_out() -> None:
    assert _said(out=True) == ["False", "3", "True"]


@pytest.mark.parametrize("gently", [False, True])
def test_what_a_task_manager_loads_is_without_pandas(gently: bool) -> None:
    script = f"""
import sys
from wallaby.worker.bootstrap import Bootstrap
from wallaby.worker.start import load
load(Bootstrap("e", "", "", ""), gently={gently})
print("wallaby.worker.main" in sys.modules, "pyarrow" in sys.modules, "pandas" in sys.modules)
"""
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    assert said.stdout.split() == ["True", "True", "False"]


def test_arrow_would_import_pandas() -> None:
    """If this fails, Arrow no longer does, and `lean` is not needed any more."""
    assert _said(out=False)[0] == "True"
