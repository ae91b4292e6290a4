"""Where and how the rows of a query are written: files in a folder that readers ignore until Spark publishes them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from wallaby.relations.expression import Column
from wallaby.relations.types import LONG, STRING

#: Spark's name for the partition of NULL and of the empty string.
NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
#: The characters that Spark escapes in partition names, besides the ASCII control characters.
_ESCAPED: Final = frozenset("\"#%'*/:=?\\{[]^")
#: The output of a writing stage: one row per file, with its name within the folder.
MANIFEST: Final = (
    Column(0, "file", STRING, nullable=False),
    Column(1, "rows", LONG, nullable=False),
    Column(2, "bytes", LONG, nullable=False),
)


class TimestampForm(Enum):
    """The types of timestamps in files, by Spark's names."""

    INT96 = "INT96"
    MICROS = "TIMESTAMP_MICROS"


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """Parquet files in one folder."""

    #: The folder, on a disk that all workers share; partitions are folders in it. In a storage, the bucket and the
    #: folder of the write in it (`tables/objects/layout.py`).
    folder: str
    #: Part of the name of every file, different for every write.
    job: str
    #: The suffix of every file name.
    suffix: str
    #: The compression codec, by Arrow's name.
    codec: str
    timestamps: TimestampForm
    #: The schema of the files, serialized by Arrow, in base 64; and Spark's own description of it.
    arrow_schema: str
    spark_schema: str
    spark_version: str
    #: The names of the partition columns; their values, as strings, are the last columns of the rows.
    partitions: tuple[str, ...] = ()
    #: The most rows in a file; 0: no limit.
    rows_max: int = 0
    #: About how many bytes of values go into one file.
    file_bytes: int = 1 << 27
    #: Are rows brought together so that there are enough, as far as the planner knows how many there will be?
    gathered: bool = False
    #: The name of the storage; empty for a disk.
    storage: str = ""


def partition_folder(names: tuple[str, ...], values: tuple[str | None, ...]) -> str:
    """The folder of a partition, as Spark names it; empty without partition columns."""
    return "/".join(
        f"{escaped(name)}={NULL_PARTITION if not value else escaped(value)}"
        for name, value in zip(names, values, strict=True)
    )


def escaped(text: str) -> str:
    """Escape the name or a value of a partition column for a path."""
    return "".join(
        f"%{ord(char):02X}" if char in _ESCAPED or ord(char) < 0x20 or ord(char) == 0x7F else char
        for char in text
    )


def file_name(target: WriteTarget, channel: int, number: int, content: int) -> str:
    """The name of a file: a function of the lineage of its rows.

    `content` is the checksum of the rows. An attempt that was not committed may have drawn other inputs under the same
    number. Its file then has another name, so it can never be taken for the committed one.
    """
    return f"part-{channel:05}-{target.job}-{content:016x}-c{number:03}{target.suffix}"
