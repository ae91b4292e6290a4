"""The checks of Iceberg."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from tools.lakes.checks import EACH, GROUPED, LONG, MERGE, ROWS, LakeChecks

_KINDS: Final = "ice.db.kinds"
_OF_KINDS: Final = GROUPED.format(table=_KINDS)


class IcebergChecks(LakeChecks):
    """Iceberg tables, read and written."""

    def steps(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """The name of what each step shows, and the step."""
        yield "Iceberg, read", self.types
        yield "Iceberg, read", self.partitions
        yield "Iceberg, read", self.snapshots
        yield "Iceberg, read", self.evolved
        yield "Iceberg, read", self.deleted
        yield "Iceberg, written", self.writes
        yield "Iceberg, written", self.commands
        yield "Iceberg, written", self.keys
        yield "Iceberg, written", self.two_at_once
        yield "Iceberg, written", self.killed

    def types(self) -> None:
        """All kinds of values."""
        self.sql(f"create table {_KINDS} using iceberg as {ROWS.format(begin=0, end=20_000)}")
        self.native(EACH.format(table=_KINDS))
        self.native(_OF_KINDS)
        self.native(f"select k, count(*) n from {_KINDS} where s is not null group by k")
        self.native(f"select max(o.x + 0) x, count(p['k']) n from {_KINDS}")

    def partitions(self) -> None:
        """Identity and hidden partitions; a filter that Iceberg answers by files alone is not in the plan."""
        rows = ROWS.format(begin=0, end=3000)
        by = "(k, months(at), bucket(2, id))"
        self.sql(f"create table ice.db.parted using iceberg partitioned by {by} as {rows}")
        self.native("select k, count(*) n, sum(id) i from ice.db.parted group by k")
        self.native("select s, count(*) n from ice.db.parted where k = 3 group by s")
        some = "at >= timestamp'1970-01-03' and k in (1, 2)"
        self.native(f"select k, count(*) n from ice.db.parted where {some} group by k")
        self.sql("alter table ice.db.parted add partition field truncate(1, s)")
        self.sql(f"insert into ice.db.parted {ROWS.format(begin=3000, end=3500)}")
        self.native("select k, count(*) n, sum(id) i from ice.db.parted where s > 's2' group by k")
        self.left("select count(*) n, max(file_path) p from ice.db.parted.files", "metadata of another table")

    def snapshots(self) -> None:
        """Every snapshot of a table that has been appended to, overwritten, changed and compacted; a tag."""
        table = "ice.db.versions"
        self.sql(f"create table {table} using iceberg as select id, id % 3 k from range(3000)")
        self.sql(f"insert into {table} select id, 9 from range(3000, 4000)")
        self.sql(f"insert overwrite {table} select id, id % 4 from range(2500)")
        self.sql(f"delete from {table} where id < 100")
        self.sql(f"update {table} set k = 7 where id between 200 and 300")
        self.sql("call ice.system.rewrite_data_files('db.versions')")
        found = [row[0] for row in self.spark.sql(f"select snapshot_id from {table}.snapshots").collect()]
        assert len(found) >= 5
        for snapshot in found:
            self.native(f"select k, count(*) n, sum(id) i from {table} version as of {snapshot} group by k")
        self.sql(f"alter table {table} create tag old as of version {found[0]}")
        self.native(f"select k, count(*) n from {table} version as of 'old' group by k")
        joined = f"{table} a join {table} version as of {found[0]} b using (id)"
        self.native(f"select a.k, count(*) n from {joined} group by a.k")

    def evolved(self) -> None:
        """Columns that older files lack, and wider types, are read; other names and other columns are left."""
        table = "ice.db.evolved"
        self.sql(f"create table {table} (id int, f float, m decimal(6, 2), gone int) using iceberg")
        self.sql(f"insert into {table} select id, id / 3, id / 4, 5 from range(500)")
        self.sql(f"alter table {table} add columns (s string, o struct<x: int>)")
        for column, kind in (("id", "bigint"), ("f", "double"), ("m", "decimal(12, 2)")):
            self.sql(f"alter table {table} alter column {column} type {kind}")
        rows = "id + 5000000000, id / 3, id / 4, 5, 's', named_struct('x', 3)"
        self.sql(f"insert into {table} select {rows} from range(300)")
        self.sql(f"alter table {table} add column o.y string")
        self.native(f"select id, f, m, s, o from {table} order by id")
        self.native(f"select s, o.x, count(*) n, sum(id) i, sum(m) m, max(f) f from {table} group by s, o.x")
        self.sql(f"alter table {table} drop column gone")
        self.sql(f"alter table {table} add column gone int")
        self.left(f"select gone, count(*) n from {table} group by gone", "by the name gone")
        self.native(f"select s, count(*) n from {table} group by s")
        self.sql(f"alter table {table} rename column s to s2")
        self.left(f"select s2, count(*) n from {table} group by s2", "has the name s in")

    def deleted(self) -> None:
        """Delete files and deletion vectors: only Spark knows the rows. Nor are files of other formats read here."""
        for version in (2, 3):
            table = f"ice.db.deleted_{version}"
            properties = f"('write.delete.mode' = 'merge-on-read', 'format-version' = '{version}')"
            rows = "select id, id % 3 k from range(0, 4000, 1, 1)"
            self.sql(f"create table {table} using iceberg tblproperties {properties} as {rows}")
            query = f"select k, count(*) n, sum(id) i from {table} group by k"
            self.native(query)
            self.sql(f"delete from {table} where id % 10 = 3")
            self.left(query, "rows of its files are deleted")
        orc = "tblproperties ('write.format.default' = 'orc')"
        self.sql(f"create table ice.db.orc using iceberg {orc} as select id, id % 3 k from range(1000)")
        self.left("select k, count(*) n from ice.db.orc group by k", "ORC")

    def writes(self) -> None:
        """Every way to write a DataFrame, in one snapshot each, and with the rows that Spark writes."""
        df = self.spark.sql(_OF_KINDS)
        for table, run in (("ice.db.ours", self.parts), ("ice.db.sparks", self.on_spark)):
            run(df.writeTo(table).using("iceberg").partitionedBy("k").create)
            run(partial(df.write.mode("append").saveAsTable, table))
            run(partial(df.write.insertInto, table))
            run(df.writeTo(table).overwritePartitions)
            run(partial(self.sql, f"insert into {table} {_OF_KINDS}"))
        self.equal("ice.db.ours", "ice.db.sparks")
        self._committed("ice.db.ours", 5)
        self.parts(partial(self.sql, f"create or replace table ice.db.ours using iceberg as {_OF_KINDS}"))
        self.equal("ice.db.ours", f"({_OF_KINDS})")

    def commands(self) -> None:
        """MERGE, UPDATE and DELETE, whose queries run here as far as they can."""
        for table in ("ours_m", "sparks_m"):
            rows = f"select id, s, 0L n from {_KINDS} where id % 2 = 1"
            self.sql(f"create table ice.db.{table} using iceberg as {rows}")
        changes = (
            "update {table} set n = 5 where id in (select min(id) from {kinds} group by s)",
            "delete from {table} where id in (select max(id) from {kinds} group by k)",
        )
        for number, command in enumerate((MERGE, *changes)):
            ours = command.format(table="ice.db.ours_m", kinds=_KINDS)
            self.parts(partial(self.sql, ours))
            self.on_spark(partial(self.sql, ours.replace("ours_m", "sparks_m")))
            self.equal("ice.db.ours_m", "ice.db.sparks_m")
            self._committed("ice.db.ours_m", number + 2)

    def keys(self) -> None:
        """A second write under a key does nothing, in every mode."""
        df = self.spark.sql(_OF_KINDS)
        for mode in ("error", "append", "overwrite"):
            for _ in range(2):
                writer = self.engine.write(df).format("iceberg").mode(mode).option("key", mode)
                writer.saveAsTable("ice.db.keyed")
            if mode == "append":
                assert self.spark.table("ice.db.keyed").count() == 2 * df.count()
        self.equal("ice.db.keyed", f"({_OF_KINDS})")
        for _ in range(2):
            self.engine.write(df).option("key", "i").insertInto("ice.db.keyed")
        assert self.spark.table("ice.db.keyed").count() == 2 * df.count()

    def two_at_once(self) -> None:
        """Two threads append at once, each under its key and twice: the rows of both are there, once."""
        self.sql("create table ice.db.both (k int, n bigint) using iceberg")

        def append(key: int) -> None:
            rows = self.spark.sql(f"select k + {key} k, count(*) n from {_KINDS} group by k")
            for _ in range(2):
                self.engine.write(rows).mode("append").option("key", str(key)).insertInto("ice.db.both")

        self.at_once(append)
        self._committed("ice.db.both", 2)
        counts = self.spark.table("ice.db.both").selectExpr("count(*)", "count(distinct k)")
        assert counts.first() == (14, 14)

    def killed(self) -> None:
        """A write during which a TaskManager is lost."""
        query = LONG.format(table=_KINDS)
        with self.killing():
            self.spark.sql(query).writeTo("ice.db.killed").using("iceberg").create()
        self._committed("ice.db.killed", 1)
        self.equal("ice.db.killed", f"({query})")

    def _committed(self, table: str, count: int) -> None:
        """A table has so many snapshots."""
        snapshots = self.on_spark(self.spark.sql(f"select * from {table}.snapshots").collect)
        assert len(snapshots) == count, [(row["operation"], row["summary"]) for row in snapshots]
