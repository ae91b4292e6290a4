"""A little TPC-H data for the drivers of these tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from wallaby import tpch


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tpch.generate(tmp_path_factory.mktemp("tpch"), 0.01)
