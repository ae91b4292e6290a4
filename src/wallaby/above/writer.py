"""PySpark's DataFrameWriter for one query. TaskManagers run what they can, and a write can have a key."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from pyspark.sql.readwriter import DataFrameWriter

from wallaby.above.keys import WriteKey
from wallaby.above.lake_keys import (
    DELTA,
    ICEBERG,
    check_delta,
    delta_options,
    iceberg_options,
    is_in_iceberg,
    provider_of,
)
from wallaby.above.objects.keys import ObjectKey
from wallaby.above.staging import recover
from wallaby.catalyst.jvm import storage_settings
from wallaby.errors import InvalidArgumentError
from wallaby.reading.storages import written_storage
from wallaby.spark.bypass import spark_alone
from wallaby.tables.objects.bucket import bucket_of

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame
    from pyspark.sql._typing import OptionalPrimitiveType

#: The option that names a write.
KEY: Final = "key"
_TABLES: Final = {"saveAsTable": "name", "insertInto": "tableName"}
_ACTIONS: Final = ("save", *_TABLES, "parquet", "orc", "json", "csv", "text", "xml", "jdbc")
_KEYED: Final = ("save", *_TABLES, "parquet")


class WriterEngine(Protocol):
    """The part of an engine that a writer needs."""

    def here(self, df: DataFrame, key: WriteKey | ObjectKey | None) -> AbstractContextManager[None]:
        """In this block, let the TaskManagers run as much as they can of this thread's actions."""


class EngineWriter(DataFrameWriter):
    """Spark's writer, except that the query runs in the TaskManagers wherever possible, at any size.

    `option("key", …)` names the write: the second write to a table under the same key does nothing.
    """

    def __init__(self, engine: WriterEngine, df: DataFrame) -> None:
        super().__init__(df)
        self._engine = engine
        self._key: str | None = None
        self._given_format: str | None = None
        self._given_path: str | None = None
        self._given_mode = "error"

    def option(self, key: str, value: OptionalPrimitiveType) -> DataFrameWriter:
        """As PySpark's, except for `key`."""
        if key.lower() == KEY:
            if not isinstance(value, str) or not value:
                raise InvalidArgumentError(
                    f"The key of a write cannot be {value!r}.", fix="Give a non-empty string."
                )
            self._key = value
            return self
        if key.lower() == "path":
            self._given_path = None if value is None else str(value)
        return super().option(key, value)

    def options(self, **options: OptionalPrimitiveType) -> DataFrameWriter:
        """As PySpark's, except for `key`."""
        for name, value in options.items():
            self.option(name, value)
        return self

    def mode(self, saveMode: str | None) -> DataFrameWriter:  # noqa: N803 - PySpark's name for it
        """As PySpark's."""
        self._given_mode = saveMode or self._given_mode
        return super().mode(saveMode)

    def format(self, source: str) -> DataFrameWriter:
        """As PySpark's."""
        self._given_format = source
        return super().format(source)

    def run(self, name: str, act: Callable[..., None], arguments: dict[str, Any]) -> None:
        """Run an action of PySpark's writer."""
        self.options(**arguments.pop("options", {}))
        if self._key is not None:
            kind = self._kind(name, arguments)
            if kind in (DELTA, ICEBERG):
                self._run_with_key(kind, self._key, name, act, arguments)
                return
        if self._key is None:
            with self._engine.here(self._df, None):
                act(self, **arguments)
            return
        key = self._write_key(self._key, name, arguments)
        if key.begin():
            with self._engine.here(self._df, key):
                act(self, **arguments)

    def _run_with_key(
        self, kind: str, key: str, name: str, act: Callable[..., None], arguments: dict[str, Any]
    ) -> None:
        """Run a write whose key Delta or Iceberg notes."""
        if kind == ICEBERG:
            if name not in _TABLES:
                raise InvalidArgumentError(
                    "A write with a key to an Iceberg table must name the table.",
                    fix="Write with `saveAsTable` or `insertInto`.",
                )
            with spark_alone(self._spark.sparkContext):
                if is_in_iceberg(self._spark, arguments[_TABLES[name]], key):
                    return
        else:
            check_delta(name, str(arguments.get("mode") or self._given_mode).lower())
        for option, value in (delta_options(key) if kind == DELTA else iceberg_options(key)).items():
            super().option(option, value)
        with self._engine.here(self._df, None):
            act(self, **arguments)

    def _kind(self, name: str, arguments: dict[str, Any]) -> str:
        """The format that an action writes."""
        if name in _TABLES:
            with spark_alone(self._spark.sparkContext):
                known = provider_of(self._spark, arguments[_TABLES[name]])
            if known is not None:
                return known
        elif name != "save":
            return name
        default = self._spark.conf.get("spark.sql.sources.default", "parquet")
        return str(arguments.get("format") or self._given_format or default).lower()

    def _write_key(self, key: str, name: str, arguments: dict[str, Any]) -> WriteKey | ObjectKey:
        """The key in the folder of the table to be written; interrupted writes there are undone first."""
        if name not in _KEYED or (name != "insertInto" and not self._is_parquet(name, arguments)):
            raise InvalidArgumentError(
                "A write with a key must go to Parquet files or to a table of Delta Lake or Iceberg.",
                fix="Leave the key out, or write to one of these.",
            )
        session: Any = self._spark._jsparkSession
        jvm: Any = self._spark._jvm
        if name in _TABLES:
            identifier = session.sessionState().sqlParser().parseTableIdentifier(arguments[_TABLES[name]])
            catalog = session.sessionState().catalog()
            if catalog.tableExists(identifier):
                place = catalog.getTableMetadata(identifier).location().toString()
            else:
                place = self._given_path or catalog.defaultTablePath(identifier).toString()
        else:
            place = arguments.get("path") or self._given_path
        if place is None:
            raise InvalidArgumentError("The write has no path.", fix="Name one, e.g. with `parquet(path)`.")
        path = jvm.org.apache.hadoop.fs.Path(place)
        conf = session.sessionState().newHadoopConf()
        system = path.getFileSystem(conf)
        address = system.makeQualified(path).toUri()
        if address.getScheme() == "file":
            recover(Path(address.getPath()))
            return WriteKey(Path(address.getPath()), key)
        bucket = address.getAuthority() or ""
        storage = written_storage(address.getScheme(), bucket, storage_settings(conf))
        if isinstance(storage, str):
            raise InvalidArgumentError(
                f"A write with a key cannot go to {place}: {storage}.",
                fix="Leave the key out, or write to a path that all hosts mount.",
            )
        return ObjectKey(bucket_of(storage, bucket), address.getPath().strip("/"), key)

    def _is_parquet(self, name: str, arguments: dict[str, Any]) -> bool:
        if name == "parquet":
            return True
        default = self._spark.conf.get("spark.sql.sources.default", "parquet")
        found = arguments.get("format") or self._given_format or default
        return str(found).lower() == "parquet"


def _action(name: str) -> Callable[..., None]:
    base = getattr(DataFrameWriter, name)

    @wraps(base)
    def act(self: EngineWriter, *arguments: Any, **named: Any) -> None:
        bound = inspect.signature(base).bind(self, *arguments, **named)
        self.run(name, base, {key: value for key, value in bound.arguments.items() if key != "self"})

    return act


for _name in _ACTIONS:
    setattr(EngineWriter, _name, _action(_name))
