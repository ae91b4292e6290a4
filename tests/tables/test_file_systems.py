"""How storages are opened: which file system, with what, and under which paths."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import fs
from tests.trees import parquet, scan_of

from wallaby.errors import SourceChangedError
from wallaby.relations.relation import DataFile
from wallaby.relations.storage import HdfsStorage
from wallaby.relations.types import LONG
from wallaby.tables import file_systems
from wallaby.tables.footer import check_unchanged
from wallaby.tables.scan import read_split
from wallaby.tables.tables import list_splits, scan_reason

CLUSTER = HdfsStorage("namenode:8020", "someone", (("dfs.x", "y"),))


def test_hdfs_is_read_by_the_path_in_the_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no cluster and no libhdfs here: a directory takes its place, behind the same interface."""
    asked: list[object] = []

    def opened(host: str, port: int, *, user: str | None, extra_conf: dict[str, str]) -> fs.FileSystem:
        asked.append((host, port, user, extra_conf))
        return fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())

    monkeypatch.setattr(fs, "HadoopFileSystem", opened)
    file_systems.make_known({"of-this-test": CLUSTER})
    (tmp_path / "lake").mkdir()
    local = parquet(tmp_path / "lake" / "x y.parquet", pa.table({"n": list(range(3000))}))
    address = "hdfs://namenode:8020/lake/x y.parquet"
    # Hadoop's client library tells whole seconds.
    file = DataFile(address, local.size_bytes, local.modified_ms // 1000 * 1000, (), "of-this-test")
    wanted = scan_of(file, ("n", LONG))
    assert scan_reason(wanted) is None
    splits = list_splits(wanted, 1)
    assert [split.pieces for split in splits] == [(0,), (1,), (2,)]
    assert [n for split in splits for n in read_split(wanted, split).column(0).to_pylist()] == list(
        range(3000)
    )
    assert asked == [("namenode", 8020, "someone", {"dfs.x": "y"})]
    with pytest.raises(SourceChangedError):
        check_unchanged(DataFile(address, local.size_bytes, local.modified_ms + 5000, (), "of-this-test"))


def test_without_its_client_library_hdfs_is_a_reason_and_no_error() -> None:
    file_systems.make_known({"nowhere": HdfsStorage("localhost:9", "someone")})
    found = scan_reason(scan_of(DataFile("hdfs://localhost:9/x.parquet", 1, 1, (), "nowhere"), ("n", LONG)))
    assert found is not None
    assert "hdfs://localhost:9/x.parquet" in found.why
