"""A little TPC-H data for the drivers of these tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from wallaby_lab import tpch


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tpch.generate(tmp_path_factory.mktemp("tpch"), 0.01)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What starts clusters or kills drivers takes minutes, and hosts need root: both have make targets of their own."""
    for item in items:
        if item.path.name in (
            "test_clusters.py",
            "test_endings.py",
            "test_certificate.py",
            "test_kubernetes.py",
        ):
            item.add_marker(pytest.mark.cluster)
        if item.path.name == "test_hosts.py":
            item.add_marker(pytest.mark.hosts)
