"""Keys of writes to Delta Lake and Iceberg, which note them in the commits of their tables.

A commit of a table has the rows and the key, or neither. So nothing has to be undone after a program was killed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.functions import col

from wallaby.errors import InvalidArgumentError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DELTA: Final = "delta"
ICEBERG: Final = "iceberg"
#: The beginning of what Delta calls the application of a transaction; the key follows.
_APPLICATION: Final = "wallaby:"
#: The entry of a snapshot's summary.
_SUMMARY: Final = "wallaby.key"
_APPENDING: Final = frozenset({"append", "overwrite"})


def provider_of(spark: SparkSession, table: str) -> str | None:
    """The name that the catalog has for a table's format; None if the table does not exist."""
    if not spark.catalog.tableExists(table):
        return None
    session: Any = spark._jsparkSession
    parts = session.sessionState().sqlParser().parseMultipartIdentifier(table)
    name = ".".join("`" + parts.apply(at).replace("`", "``") + "`" for at in range(parts.size()))
    rows = spark.sql(f"describe table extended {name}").where("col_name = 'Provider'").collect()
    return str(rows[0]["data_type"]).lower() if rows else ""


def delta_options(key: str) -> Mapping[str, str]:
    """The options with which Delta commits a write once: it knows the latest version of each application."""
    return {"txnAppId": f"{_APPLICATION}{key}", "txnVersion": "1"}


def check_delta(action: str, mode: str) -> None:
    """Refuse an action that ignores such options, and a mode in which Delta looks for the table before the key.

    Raises:
        InvalidArgumentError: The action or the mode is one of those.
    """
    if action == "insertInto":
        raise InvalidArgumentError(
            "Delta Lake does not record the key of a write with `insertInto`.",
            fix="Write with `saveAsTable`, or to the table's path with `save`.",
        )
    if action == "saveAsTable" and mode not in _APPENDING:
        raise InvalidArgumentError(
            f"A write with a key to a Delta table cannot have the mode {mode}.",
            fix="Choose append or overwrite, or write to the table's path with `save`.",
        )


def iceberg_options(key: str) -> Mapping[str, str]:
    """The option with which Iceberg notes a key in the summary of the snapshot."""
    return {f"snapshot-property.{_SUMMARY}": key}


def is_in_iceberg(spark: SparkSession, table: str, key: str) -> bool:
    """Does the table's current snapshot, or one that it descends from, have the key?"""
    if not spark.catalog.tableExists(table):
        return False
    current = spark.table(f"{table}.history").where("is_current_ancestor").select("snapshot_id")
    snapshots = spark.table(f"{table}.snapshots").where(col("summary")[_SUMMARY] == key)
    return bool(snapshots.join(current, "snapshot_id").take(1))
