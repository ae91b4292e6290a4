"""Freed memory is given back at once under a small budget and kept for a while under a larger one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from wallaby.worker.memory.allocator_settings import (
    INSTANT_BYTES_MIN,
    KEEPING_BYTES_MIN,
    allocator_variables,
    keeps_between_queries,
    set_allocators,
)

#: Allocates and frees some pages by Arrow and by Polars.
_LOAD = """
import polars, pyarrow
frame = polars.DataFrame({"a": range(1 << 20)}).rechunk()
table = frame.to_arrow().cast(pyarrow.schema([("a", pyarrow.float64())]))
print(table.num_rows)
"""


@pytest.mark.parametrize("memory_bytes", [0, INSTANT_BYTES_MIN, KEEPING_BYTES_MIN])
def test_the_libraries_understand_how_they_are_set(memory_bytes: int) -> None:
    environment = {**os.environ, **allocator_variables(memory_bytes)}
    done = subprocess.run(
        [sys.executable, "-c", _LOAD], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert (done.stdout.strip(), done.stderr) == (str(1 << 20), "")


def test_the_larger_the_budget_the_longer_freed_memory_is_kept() -> None:
    small, middle = allocator_variables(INSTANT_BYTES_MIN - 1), allocator_variables(KEEPING_BYTES_MIN - 1)
    large = allocator_variables(KEEPING_BYTES_MIN)
    assert small["ARROW_DEFAULT_MEMORY_POOL"] == "system"
    assert "ARROW_DEFAULT_MEMORY_POOL" not in large
    assert small["MIMALLOC_PURGE_DELAY"] == "0"
    assert 0 < int(middle["MIMALLOC_PURGE_DELAY"]) < int(large["MIMALLOC_PURGE_DELAY"])
    assert "dirty_decay_ms:0" in small["_RJEM_MALLOC_CONF"].split(",")
    assert "dirty_decay_ms:0" not in large["_RJEM_MALLOC_CONF"].split(",")
    assert not keeps_between_queries(KEEPING_BYTES_MIN - 1)
    assert keeps_between_queries(KEEPING_BYTES_MIN)


def test_what_the_user_has_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIMALLOC_PURGE_DELAY", "77")
    monkeypatch.setenv("_RJEM_MALLOC_CONF", "")
    monkeypatch.delenv("_RJEM_MALLOC_CONF")
    set_allocators(0)
    assert os.environ["MIMALLOC_PURGE_DELAY"] == "77"
    assert os.environ["_RJEM_MALLOC_CONF"] == allocator_variables(0)["_RJEM_MALLOC_CONF"]
