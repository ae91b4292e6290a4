"""A Spark write as an order to the TaskManagers: whether they can carry it out, and the format of its files."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as sparks
from pyspark.sql.functions import col

from wallaby.above.keys import WriteKey
from wallaby.above.objects.keys import ObjectKey
from wallaby.above.objects.publication import ObjectPublication
from wallaby.above.publishing import Publication
from wallaby.catalyst.jvm import storage_settings
from wallaby.reading.storages import storage_name, written_storage
from wallaby.relations.reason import Reason
from wallaby.relations.storage import S3Storage
from wallaby.relations.target import TimestampForm, WriteTarget, file_name
from wallaby.tables.file_systems import make_known
from wallaby.tables.objects.bucket import bucket_of
from wallaby.tables.parquet_writing import ParquetForm

#: About how many bytes of values go into one file.
FILE_BYTES: Final = 128 << 20
#: For each codec in Parquet's settings: Arrow's name for it, and the suffix of file names.
_CODECS: Final = {
    "UNCOMPRESSED": ("none", ""),
    "SNAPPY": ("snappy", ".snappy"),
    "GZIP": ("gzip", ".gz"),
    "ZSTD": ("zstd", ".zstd"),
    "LZ4_RAW": ("lz4", ".lz4raw"),
}
#: The Parquet settings that Spark makes for every write, with Spark's own value where users can set another. A write
#: with any other setting is left to Spark.
_ANY: Final = object()
_MADE_BY_SPARK: Final[Mapping[str, object]] = {
    "compression": _ANY,
    "write.support.class": _ANY,
    "enable.summary-metadata": "false",
    "summary.metadata.level": "NONE",
    "writer.version": "PARQUET_1_0",
}
_COMPRESSION: Final = "parquet.compression"
_TIMESTAMPS: Final = "spark.sql.parquet.outputTimestampType"
_MILLIS: Final = "TIMESTAMP_MILLIS"
_LEGACY: Final = "spark.sql.parquet.writeLegacyFormat"
_REBASES: Final = ("spark.sql.parquet.datetimeRebaseModeInWrite", "spark.sql.parquet.int96RebaseModeInWrite")
_MARKED: Final = "mapreduce.fileoutputcommitter.marksuccessfuljobs"
_FIELD_ID: Final = "parquet.field.id"

_FLAT: Final[Mapping[type[sparks.DataType], pa.DataType]] = {
    sparks.BooleanType: pa.bool_(),
    sparks.ByteType: pa.int8(),
    sparks.ShortType: pa.int16(),
    sparks.IntegerType: pa.int32(),
    sparks.LongType: pa.int64(),
    sparks.FloatType: pa.float32(),
    sparks.DoubleType: pa.float64(),
    sparks.StringType: pa.string(),
    sparks.CharType: pa.string(),
    sparks.VarcharType: pa.string(),
    sparks.BinaryType: pa.binary(),
    sparks.DateType: pa.date32(),
    sparks.TimestampType: pa.timestamp("us", tz="UTC"),
    sparks.TimestampNTZType: pa.timestamp("us"),
    sparks.DayTimeIntervalType: pa.int64(),
    sparks.YearMonthIntervalType: pa.int32(),
}


@dataclass(frozen=True, slots=True)
class MadeFiles:
    """The files of a write, with their rows and bytes, and the figures of the query that made them."""

    files: tuple[tuple[str, int, int], ...]
    seconds: float
    losses: int

    @property
    def rows(self) -> int:
        """The number of rows in all files."""
        return sum(rows for _, rows, _ in self.files)

    @property
    def figures(self) -> tuple[None, str, int, int, int, int]:
        """The figures for Spark's UI, in the order of those of a part whose rows are kept (`Subplans._run`)."""
        size_bytes = sum(size_bytes for *_, size_bytes in self.files)
        return None, "written", self.rows, size_bytes, int(self.seconds * 1000), self.losses


class Publishing(Protocol):
    """The files of one write on their way into a table."""

    @property
    def folder(self) -> Path | str:
        """The folder that TaskManagers write to."""

    @property
    def is_whole(self) -> bool:
        """Does one step publish everything?"""

    def stage(self, files: Sequence[tuple[str, int]]) -> None:
        """Take the committed files, by their names and sizes, out of everything that was made."""

    def publish(self) -> None:
        """Put the files into the table."""

    def finish(self) -> None:
        """Make the write final, and delete the old files."""

    def abandon(self) -> None:
        """Roll the write back: the table is as it was before."""


@dataclass(frozen=True, slots=True)
class WriteOrder:
    """The write that Spark asks for when it executes one."""

    run: Any
    #: The address of the file system, and the staging folder in it that Spark has for the write, in the table's folder.
    root: str
    staging: str
    job: str
    schema: str
    partitions: tuple[str, ...]
    #: The positions, in the rows of the query, of the columns of files, then of partition columns.
    columns: tuple[int, ...]
    rows_max: int
    #: Does the write replace only the partitions that it has rows for?
    dynamic: bool
    conf: Any
    #: The identifier of the write's key, if it has one.
    key: str | None
    #: Was the table there before Spark began to write it?
    existed: bool
    #: The paths that Spark would have deleted before the query ran.
    deleted: tuple[str, ...]

    @classmethod
    def read(cls, question: Any) -> WriteOrder:
        """Decode an order as Java sends it."""
        (
            run,
            root,
            staging,
            job,
            schema,
            names,
            places,
            rows_max,
            dynamic,
            conf,
            key,
            existed,
            deleted,
        ) = question
        return cls(
            run=run,
            root=root,
            staging=staging,
            job=job,
            schema=schema,
            partitions=tuple(names),
            columns=tuple(places),
            rows_max=int(rows_max),
            dynamic=bool(dynamic),
            conf=conf,
            key=key,
            existed=bool(existed),
            deleted=tuple(deleted),
        )

    @property
    def storage(self) -> S3Storage | str | None:
        """The storage of the table, or the reason why only Spark can write there; None for a disk."""
        address = urlsplit(self.root)
        if address.scheme == "file":
            return None
        return written_storage(address.scheme, address.netloc, storage_settings(self.conf))

    def publication(self, key: WriteKey | ObjectKey | None) -> Publishing:
        """How the files of the write are published.

        Raises:
            WriteError: the file system refuses to make a folder for them.
            UnsuitableBucketError: only Spark can write to this bucket.
        """
        sparks = Path(self.staging)
        storage = self.storage
        if isinstance(storage, S3Storage):
            assert not isinstance(key, WriteKey), "a key is noted where its table is"
            return ObjectPublication(
                bucket_of(storage, urlsplit(self.root).netloc),
                str(sparks.parent).strip("/"),
                self.job,
                replaced=[_inside(Path(path), sparks.parent) for path in self.deleted],
                dynamic=self.dynamic,
                key=key,
            )
        assert not isinstance(key, ObjectKey), "a key is noted where its table is"
        return Publication(
            sparks.parent,
            self.job,
            sparks,
            deleted=map(Path, self.deleted),
            dynamic=self.dynamic,
            existed=self.existed,
            marked=str(self.conf.get(_MARKED, "true")).lower() == "true",
            key=key,
        )


def target_of(order: WriteOrder, df: DataFrame, file_bytes: int = 0) -> WriteTarget | Reason:
    """The format and size of the files of a write (0: any size), or the reason why Spark has to write them."""
    session = df.sparkSession
    given = dict(order.conf.getPropsWithPrefix("parquet."))
    others = [key for key, value in given.items() if _MADE_BY_SPARK.get(key) not in (_ANY, value)]
    if others:
        return Reason(
            "parquet", f"only Spark's writer follows {', '.join(f'parquet.{key}' for key in sorted(others))}"
        )
    storage = order.storage
    if isinstance(storage, str):
        return Reason("s3a", storage)
    if storage is not None:
        make_known({storage_name(storage): storage})
    codec = _CODECS.get(str(order.conf.get(_COMPRESSION)))
    if codec is None:
        return Reason("parquet", f"only Spark's writer compresses with {order.conf.get(_COMPRESSION)}")
    if str(order.conf.get(_LEGACY)).lower() == "true":
        return Reason("parquet", f"only Spark's writer follows {_LEGACY}")
    if any(str(session.conf.get(key)).upper() != "CORRECTED" for key in _REBASES):
        return Reason("parquet", "only Spark's writer rebases dates and times")
    schema = sparks.StructType.fromJson(json.loads(order.schema))
    try:
        arrow = pa.schema([_field(field) for field in schema.fields])
    except _UnknownTypeError as error:
        return Reason("parquet", f"only Spark's writer writes {error}")
    form, kinds = str(order.conf.get(_TIMESTAMPS)), _kinds(schema)
    if sparks.TimestampType not in kinds:
        form = TimestampForm.MICROS.value
    elif form == _MILLIS or (form == TimestampForm.INT96.value and sparks.TimestampNTZType in kinds):
        return Reason("parquet", f"only Spark's writer writes such timestamps as {form}")
    if _FIELD_ID in order.schema:
        return Reason("parquet", "only Spark's writer writes field ids")
    return WriteTarget(
        folder=order.staging,
        job=order.job,
        suffix=f"{codec[1]}.parquet",
        codec=codec[0],
        timestamps=TimestampForm(form),
        arrow_schema=b64encode(arrow.serialize().to_pybytes()).decode("ascii"),
        spark_schema=order.schema,
        spark_version=session.version,
        partitions=order.partitions,
        rows_max=max(order.rows_max, 0),  # to Spark, any other number means no limit, too
        file_bytes=file_bytes or FILE_BYTES,
        gathered=bool(file_bytes),
        storage="" if storage is None else storage_name(storage),
    )


def rows_for(order: WriteOrder, df: DataFrame) -> DataFrame:
    """Arrange rows for a writing stage: the columns of files, then partition values as strings."""
    named = df.toDF(*(f"c{at}" for at in range(len(df.columns))))
    data = len(order.columns) - len(order.partitions)
    columns = [
        col(f"c{place}").alias(f"w{at}") if at < data else col(f"c{place}").cast("string").alias(f"w{at}")
        for at, place in enumerate(order.columns)
    ]
    return named.select(*columns)


def finished(target: WriteTarget, batches: list[pa.RecordBatch]) -> list[tuple[str, int, int]]:
    """The files of a completed query: names, rows and bytes."""
    files = [(row["c0"], row["c1"], row["c2"]) for batch in batches for row in batch.to_pylist()]
    return files if files or target.partitions else [_empty(target)]


def _empty(target: WriteTarget) -> tuple[str, int, int]:
    """Write a file without rows, so that readers find the schema."""
    name = file_name(target, 0, 0, 0)
    form = ParquetForm(target)
    return name, 0, form.write(name, [form.schema.empty_table()])


def _inside(path: Path, table: Path) -> str:
    """The path of a folder within its table; empty for the table itself."""
    name = str(path.relative_to(table))
    return "" if name == "." else name


class _UnknownTypeError(Exception):
    """A type that our writer cannot write."""


def _kinds(type_: sparks.DataType) -> set[type[sparks.DataType]]:
    """The classes of a type and of all types nested in it."""
    match type_:
        case sparks.ArrayType():
            parts = [type_.elementType]
        case sparks.MapType():
            parts = [type_.keyType, type_.valueType]
        case sparks.StructType():
            parts = [field.dataType for field in type_.fields]
        case _:
            parts = []
    return {type(type_)}.union(*map(_kinds, parts))


def _field(field: sparks.StructField) -> pa.Field:
    return pa.field(field.name, _type(field.dataType), field.nullable)


def _type(type_: sparks.DataType) -> pa.DataType:
    match type_:
        case sparks.DecimalType():
            return pa.decimal128(type_.precision, type_.scale)
        case sparks.ArrayType():
            return pa.list_(pa.field("element", _type(type_.elementType), type_.containsNull))
        case sparks.MapType():
            value = pa.field("value", _type(type_.valueType), type_.valueContainsNull)
            return pa.map_(pa.field("key", _type(type_.keyType), nullable=False), value)
        case sparks.StructType():
            return pa.struct([_field(field) for field in type_.fields])
        case _ if type(type_) in _FLAT:
            return _FLAT[type(type_)]
        case _:
            raise _UnknownTypeError(type_.simpleString())
