"""Building blocks on tiny data: each does its work, and so does its reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from wallaby_lab import tpch
from wallaby_lab.bench.blocks import committing, pushing
from wallaby_lab.bench.blocks.block import Block
from wallaby_lab.bench.blocks.partitioning import measure_partitioning
from wallaby_lab.bench.blocks.probing import measure_probe


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tpch.generate(tmp_path_factory.mktemp("data"), 0.01)


@pytest.mark.parametrize(
    ("measure", "count"),
    [
        (measure_partitioning, 1),
        (measure_probe, 1),
        (pushing.measure_push, 2),
        pytest.param(committing.measure_commits, 2, marks=pytest.mark.redis),
    ],
)
def test_a_block_is_measured_beside_its_reference(
    data: Path,
    measure: Callable[[Path, int], Sequence[Block]],
    count: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(committing, "COMMITS", 200)
    blocks = measure(data, 1)
    assert len(blocks) == count
    for block in blocks:
        assert block.seconds > 0
        assert block.bare_seconds > 0
        assert block.amount > 0
