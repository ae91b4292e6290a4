"""A channel that writes: which files it makes, and that making them again changes nothing."""

from __future__ import annotations

import shutil
from base64 import b64encode
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.trees import column

from wallaby.errors import WriteError
from wallaby.operators.state import EMPTY
from wallaby.operators.write_kernel import WriteKernel
from wallaby.plan.physical import WriteFragment
from wallaby.relations.expression import Column
from wallaby.relations.target import TimestampForm, WriteTarget, escaped
from wallaby.relations.types import LONG, STRING
from wallaby.statements.connection import KernelSettings

K, P = column(1, LONG), column(2, STRING)
SCHEMA = pa.schema([pa.field("key", pa.int64(), nullable=False)])
Manifest = list[tuple[str, int, int]]


def target(folder: Path, schema: pa.Schema = SCHEMA) -> WriteTarget:
    folder.mkdir(exist_ok=True)
    return WriteTarget(
        folder=str(folder),
        job="job",
        suffix=".parquet",
        codec="snappy",
        timestamps=TimestampForm.MICROS,
        arrow_schema=b64encode(schema.serialize().to_pybytes()).decode("ascii"),
        spark_schema='{"type":"struct"}',
        spark_version="4.3.0",
        file_bytes=800,
    )


def numbers(first: int, after: int, *, parts: list[str | None] | None = None) -> pa.RecordBatch:
    columns: list[pa.Array] = [pa.array(range(first, after), pa.int64())]
    if parts is not None:
        columns.append(pa.array([parts[at % len(parts)] for at in range(first, after)], pa.string()))
    return pa.record_batch(columns, names=["c1", "c2"][: len(columns)])


def written(
    where: WriteTarget,
    steps: list[list[pa.RecordBatch]],
    *,
    channel: int = 0,
    columns: tuple[Column, ...] = (K,),
) -> Manifest:
    """What a channel gives for these inputs, step by step, and for the end."""
    kernel = WriteKernel(WriteFragment(columns, where), KernelSettings(), channel)
    state, found = EMPTY, []
    for at, inputs in enumerate([*steps, []]):
        state, result = kernel.step(state, inputs={0: inputs}, last=at == len(steps))
        found += [tuple(row.values()) for batch in result.batches for row in batch.to_pylist()]
    assert not list(state.batches)
    return found


def content(where: WriteTarget, files: Manifest) -> list[int]:
    folder = Path(where.folder)
    return [row for name, _, _ in files for row in pq.ParquetFile(folder / name).read()["key"].to_pylist()]


def listed(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}


def test_rows_are_collected_until_they_fill_a_file(tmp_path: Path) -> None:
    where = target(tmp_path / "t")
    files = written(where, [[numbers(at, at + 40)] for at in range(0, 280, 40)])
    assert [rows for _, rows, _ in files] == [120, 120, 40]
    assert content(where, files) == list(range(280))
    assert {name for name, _, _ in files} == listed(tmp_path / "t")
    assert [size for _, _, size in files] == [(tmp_path / "t" / name).stat().st_size for name, _, _ in files]
    metadata = pq.ParquetFile(tmp_path / "t" / files[0][0]).metadata.metadata
    assert metadata[b"org.apache.spark.sql.parquet.row.metadata"] == b'{"type":"struct"}'
    assert metadata[b"org.apache.spark.version"] == b"4.3.0"


def test_a_retraced_channel_finds_its_files_and_writes_none_again(tmp_path: Path) -> None:
    where, steps = target(tmp_path / "t"), [[numbers(0, 150)], [numbers(150, 200)]]
    files = written(where, steps)
    before = {name: (tmp_path / "t" / name).stat() for name in listed(tmp_path / "t")}
    assert written(where, steps) == files
    after = {name: (tmp_path / "t" / name).stat() for name in listed(tmp_path / "t")}
    assert {name: (one.st_ino, one.st_mtime_ns) for name, one in before.items()} == {
        name: (one.st_ino, one.st_mtime_ns) for name, one in after.items()
    }


def test_files_that_are_gone_are_made_again_to_the_byte(tmp_path: Path) -> None:
    where, steps = target(tmp_path / "t"), [[numbers(0, 150)], [numbers(150, 200)]]
    files = written(where, steps)
    first = [(tmp_path / "t" / name).read_bytes() for name, _, _ in files]
    shutil.rmtree(tmp_path / "t")
    (tmp_path / "t").mkdir()
    assert written(where, steps) == files
    assert [(tmp_path / "t" / name).read_bytes() for name, _, _ in files] == first


def test_an_attempt_with_other_inputs_makes_files_with_other_names(tmp_path: Path) -> None:
    where = target(tmp_path / "t")
    one = written(where, [[numbers(0, 150)]])
    other = written(where, [[numbers(1, 151)]])
    elsewhere = written(where, [[numbers(0, 150)]], channel=1)
    assert len({files[0][0] for files in (one, other, elsewhere)}) == 3
    assert content(where, one) == list(range(150))


def test_each_partition_has_a_folder_and_rows_keep_their_order(tmp_path: Path) -> None:
    where = replace(target(tmp_path / "t"), partitions=("p",))
    parts: list[str | None] = ["a/b", None, "", "ä=1"]
    files = written(where, [[numbers(0, 200, parts=parts)], [numbers(200, 400, parts=parts)]], columns=(K, P))
    by_folder: dict[str, list[int]] = {}
    for file in files:
        by_folder.setdefault(str(Path(file[0]).parent), []).extend(content(where, [file]))
    assert by_folder == {
        "p=__HIVE_DEFAULT_PARTITION__": [at for at in range(400) if at % 4 in (1, 2)],
        "p=a%2Fb": list(range(0, 400, 4)),
        "p=ä%3D1": list(range(3, 400, 4)),
    }


def test_no_file_has_more_rows_than_asked_for(tmp_path: Path) -> None:
    where = replace(target(tmp_path / "t"), rows_max=30)
    files = written(where, [[numbers(0, 100)]])
    assert [rows for _, rows, _ in files] == [30, 30, 30, 10]
    assert len({name for name, _, _ in files}) == 4
    partitioned = replace(where, folder=str(tmp_path / "t"), job="other", partitions=("p",))
    files = written(partitioned, [[numbers(0, 100, parts=["x", "y"])]], columns=(K, P))
    assert [rows for _, rows, _ in files] == [30, 20, 30, 20]


def test_a_channel_without_rows_makes_no_file(tmp_path: Path) -> None:
    assert written(target(tmp_path / "t"), []) == []
    assert listed(tmp_path / "t") == set()


@pytest.mark.parametrize("partitions", [(), ("p",)], ids=["plain", "partitioned"])
def test_nobody_writes_once_the_folder_is_gone(tmp_path: Path, partitions: tuple[str, ...]) -> None:
    """A worker that wakes up after the write was published or given up."""
    where = replace(target(tmp_path / "t"), partitions=partitions)
    shutil.rmtree(tmp_path / "t")
    rows = numbers(0, 150, parts=["x"] if partitions else None)
    with pytest.raises(WriteError, match="Cannot write files to"):
        written(where, [[rows]], columns=(K, P) if partitions else (K,))
    assert not (tmp_path / "t").exists()


def test_what_is_written_halfway_has_no_name_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[set[str]] = []
    fill = pq.ParquetWriter.write_table

    def failing(self: pq.ParquetWriter, *arguments: object, **named: object) -> None:
        fill(self, *arguments, **named)
        seen.append(listed(tmp_path / "t"))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", failing)
    where = target(tmp_path / "t")
    with pytest.raises(WriteError, match="No space left on device"):
        written(where, [[numbers(0, 150)]])
    assert all(name.startswith("_") for name in seen[0])
    assert listed(tmp_path / "t") == set()


def test_names_are_escaped_as_spark_does() -> None:
    assert escaped("a\"#%'*/:=?\\{[]^\x01\x7f") == ("a%22%23%25%27%2A%2F%3A%3D%3F%5C%7B%5B%5D%5E%01%7F")
    assert escaped("ü } ~ $ & + ( ) , ; @ !") == "ü } ~ $ & + ( ) , ; @ !"
