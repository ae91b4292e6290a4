"""The checks of Delta Lake."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from tools.lakes.checks import EACH, GROUPED, LONG, MERGE, ROWS, LakeChecks

_BY_NAME: Final = "tblproperties ('delta.columnMapping.mode' = 'name')"
_UPGRADED: Final = """
    tblproperties ('delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')
"""
_OF_KINDS: Final = GROUPED.format(table="kinds")


class DeltaChecks(LakeChecks):
    """Delta tables, read and written."""

    def steps(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """The name of what each step shows, and the step."""
        yield "Delta Lake, read", self.types
        yield "Delta Lake, read", self.partitions
        yield "Delta Lake, read", self.snapshots
        yield "Delta Lake, read", self.renamed
        yield "Delta Lake, read", self.evolved
        yield "Delta Lake, read", self.deleted
        yield "Delta Lake, read", self.copied
        yield "Delta Lake, written", self.writes
        yield "Delta Lake, written", self.commands
        yield "Delta Lake, written", self.keys
        yield "Delta Lake, written", self.two_at_once
        yield "Delta Lake, written", self.killed

    def types(self) -> None:
        """All kinds of values, in a table in the catalog and by its path."""
        self.sql(f"create table kinds using delta as {ROWS.format(begin=0, end=20_000)}")
        for table in ("kinds", f"delta.`{self._path('kinds')}`"):
            self.native(EACH.format(table=table))
            self.native(GROUPED.format(table=table))
        self.native("select count(*) n from kinds where s is not null")
        self.native("select max(o.x) x, count(p['k']) n from kinds")

    def partitions(self) -> None:
        """Partitions of odd names, NULL among them, and only the files that a filter needs."""
        names = "case id % 5 when 0 then 'a b' when 1 then 'c=d/e' when 2 then '%41' when 3 then 'ü' end"
        self.sql(
            f"create table parted using delta partitioned by (w) as select id, {names} w from range(5000)"
        )
        self.native("select w, count(*) n, sum(id) i from parted group by w")
        self.native("select w, id from parted where w = 'c=d/e' order by id")
        self.native("select count(*) n, sum(id) i from parted where w is null")
        self.native("select count(*) n from parted where w > 'a' and id > 100")
        times = "date_add(date'2024-01-01', cast(id % 3 as int)) d, timestamp_seconds(id % 4 * 3600) at"
        self.sql(
            f"create table dated using delta partitioned by (d, at) as select id, {times} from range(2000)"
        )
        self.native("select d, at, count(*) n, max(id) i from dated group by d, at")
        one = "d = date'2024-01-02' and at > timestamp'1970-01-01 01:00:00'"
        self.native(f"select count(*) n from dated where {one}")
        beside = "range(5000) t cross join parted p where t.id > 4990"
        self.native(f"select max(p.w) w, count(*) n, sum(p.id) i from {beside}")
        made = "(select concat(w, id % 2) w, count(*) id from parted group by 1)"
        self.native(f"select w, id from {made} where w > 'b1' and id > 7")

    def snapshots(self) -> None:
        """Every version of a table that has been appended to, overwritten, changed and compacted."""
        self.sql("create table versions using delta as select id, id % 3 k from range(3000)")
        self.sql("insert into versions select id, 9 from range(3000, 4000)")
        self.sql("insert overwrite versions select id, id % 4 from range(2500)")
        self.sql("delete from versions where id < 100")
        self.sql("update versions set k = 7 where id between 200 and 300")
        self.sql("optimize versions")
        for version in range(6):
            self.native(f"select k, count(*) n, sum(id) i from versions version as of {version} group by k")
        joined = "versions a join versions version as of 0 b using (id)"
        self.native(f"select a.k, count(*) n from {joined} group by a.k")
        older = "(select max(id) from versions version as of 1)"
        self.native(f"select k, {older} m, count(*) n from versions group by k")

    def renamed(self) -> None:
        """Columns that files know by other names, renamed, dropped and made again."""
        rows = ROWS.format(begin=0, end=2000)
        self.sql(f"create table renamed using delta partitioned by (k) {_BY_NAME} as {rows}")
        self.sql("alter table renamed rename column s to `s 2`")
        self.sql("alter table renamed rename column k to q")
        self.sql("alter table renamed drop column m")
        self.sql("alter table renamed add column m string")
        self.sql("insert into renamed (id, q, `s 2`, m) select id, 3, 'new', 'm' from range(2000, 2100)")
        self.native("select q, `s 2`, m, count(*) n, sum(id) i from renamed group by q, `s 2`, m")
        self.native("select count(*) n from renamed where q = 3 and m is null and `s 2` = 's3'")
        self.left("select max(o.x) x, count(*) n from renamed", "fields of the struct")
        self.sql(
            "create table upgraded using delta as select id, named_struct('x', id) o, id k from range(1000)"
        )
        self.sql(f"alter table upgraded set {_UPGRADED}")
        self.sql("alter table upgraded rename column k to id2")
        self.native("select max(o.x) x, sum(id2) i, count(*) n from upgraded")
        self.sql("alter table upgraded rename column o.x to y")
        self.left("select max(o.y) y, count(*) n from upgraded", "fields of the struct")
        by_id = _BY_NAME.replace("'name'", "'id'")
        self.sql(f"create table by_id using delta {by_id} as select id, id % 3 k from range(1000)")
        self.left("select k, count(*) n from by_id group by k", "by id")

    def evolved(self) -> None:
        """Columns that older files lack, and types that have become wider."""
        widened = "tblproperties ('delta.enableTypeWidening' = 'true')"
        self.sql(f"create table evolved (id int, f float, m decimal(6, 2)) using delta {widened}")
        self.sql("insert into evolved select id, id / 3, id / 4 from range(500)")
        self.sql("alter table evolved add columns (s string, o struct<x: int>)")
        self.sql(
            "insert into evolved select id, id / 3, id / 4, 's', named_struct('x', id) from range(500, 900)"
        )
        for column, kind in (("id", "bigint"), ("f", "double"), ("m", "decimal(12, 4)")):
            self.sql(f"alter table evolved alter column {column} type {kind}")
        self.sql("alter table evolved add column o.y string after x")
        whole = "named_struct('x', 1, 'y', 'y')"
        self.sql(f"insert into evolved select id + 5000000000, id / 3, id / 7, 't', {whole} from range(300)")
        self.native("select id, f, m, s, o from evolved order by id")
        self.native("select s, o.x, count(*) n, sum(id) i, sum(m) m, max(f) f from evolved group by s, o.x")
        self.left("select o.y, count(*) n from evolved group by o.y", "not struct<y:string>")

    def deleted(self) -> None:
        """Deletion vectors: only Spark knows the rows. Once they are purged, the files are read here again."""
        vectors = "tblproperties ('delta.enableDeletionVectors' = 'true')"
        self.sql(
            f"create table deleted using delta {vectors} as select id, id % 3 k from range(0, 4000, 1, 2)"
        )
        query = "select k, count(*) n, sum(id) i from deleted group by k"
        self.native(query)
        self.sql("delete from deleted where id % 10 = 3")
        self.left(query, "deletion vector")
        self.native(query.replace("deleted", "deleted version as of 0"))
        self.sql("reorg table deleted apply (purge)")
        self.native(query)

    def copied(self) -> None:
        """A table whose files were copied, so that they have other times than its log says."""
        self.sql("create table original using delta as select id, id % 3 k from range(1000)")
        for file in Path(self._path("original").removeprefix("file:")).rglob("*.parquet"):
            os.utime(file, (1_000_000_000, 1_000_000_000))
        self.native("select k, count(*) n from original group by k")

    def writes(self) -> None:
        """Every way to write a DataFrame, in one commit each, and with the rows that Spark writes."""
        df = self.spark.sql(_OF_KINDS)
        ours, sparks = str(self.folder / "ours"), str(self.folder / "sparks")
        for number, mode in enumerate(("error", "append", "overwrite")):
            writer = df.write.format("delta").mode(mode).partitionBy("k")
            self.parts(partial(writer.save, ours))
            self.on_spark(partial(writer.save, sparks))
            self.equal(f"delta.`{ours}`", f"delta.`{sparks}`")
            self._committed(f"delta.`{ours}`", number + 1)
        for option, value in (("replaceWhere", "k = 2"), ("partitionOverwriteMode", "dynamic")):
            writer = df.where("k = 2").write.format("delta").mode("overwrite").option(option, value)
            self.parts(partial(writer.save, ours))
        self.equal(f"delta.`{ours}`", f"delta.`{sparks}`")
        self._committed(f"delta.`{ours}`", 5)
        self.parts(lambda: df.write.format("delta").saveAsTable("saved"))
        self.parts(lambda: df.write.insertInto("saved"))
        self.parts(lambda: df.writeTo("saved").append())
        self.parts(partial(self.sql, f"insert into saved {_OF_KINDS}"))
        self.parts(partial(self.sql, f"create or replace table again using delta as {_OF_KINDS}"))
        self._committed("saved", 4)
        self.equal("again", f"delta.`{sparks}`")
        assert self.spark.table("saved").count() == 4 * df.count()

    def commands(self) -> None:
        """MERGE, whose source runs here; UPDATE and DELETE, which Spark runs."""
        for table in ("ours_m", "sparks_m"):
            self.sql(f"create table {table} using delta as select id, s, 0L n from kinds where id % 2 = 1")
        changes = ("update {table} set n = 5 where id % 7 = 3", "delete from {table} where s like 's1%'")
        for number, command in enumerate((MERGE, *changes)):
            ours = partial(self.sql, command.format(table="ours_m", kinds="kinds"))
            if command == MERGE:
                self.parts(ours)
            else:
                ours()
            self.on_spark(partial(self.sql, command.format(table="sparks_m", kinds="kinds")))
            self.equal("ours_m", "sparks_m")
            self._committed("ours_m", number + 2)

    def keys(self) -> None:
        """A second write under a key does nothing, in every mode."""
        df = self.spark.sql(_OF_KINDS)
        path = str(self.folder / "keyed")
        for mode in ("error", "append", "overwrite"):
            for _ in range(2):
                self.engine.write(df).format("delta").mode(mode).option("key", mode).save(path)
        self._committed(f"delta.`{path}`", 3)
        self.equal(f"delta.`{path}`", f"({_OF_KINDS})")
        for number, mode in enumerate(("append", "overwrite")):
            for _ in range(2):
                writer = self.engine.write(df).format("delta").mode(mode).option("key", mode)
                writer.saveAsTable("keyed")
            self._committed("keyed", number + 1)
        self.equal("keyed", f"({_OF_KINDS})")
        for write in (
            lambda: self.engine.write(df).option("key", "i").insertInto("keyed"),
            lambda: self.engine.write(df).format("delta").option("key", "e").saveAsTable("keyed"),
        ):
            self.refused(write)

    def two_at_once(self) -> None:
        """Two threads append at once, each under its key and twice: the rows of both are there, once."""
        path = str(self.folder / "both")
        self.spark.range(0).selectExpr("cast(id as int) k", "id n").write.format("delta").save(path)

        def append(key: int) -> None:
            rows = self.spark.sql(f"select k + {key} k, count(*) n from kinds group by k")
            for _ in range(2):
                self.engine.write(rows).format("delta").mode("append").option("key", str(key)).save(path)

        self.at_once(append)
        self._committed(f"delta.`{path}`", 3)
        counts = self.spark.read.format("delta").load(path).selectExpr("count(*)", "count(distinct k)")
        assert counts.first() == (14, 14)

    def killed(self) -> None:
        """A write during which a TaskManager is lost."""
        query = LONG.format(table="kinds")
        path = str(self.folder / "killed")
        with self.killing():
            self.spark.sql(query).write.format("delta").save(path)
        self._committed(f"delta.`{path}`", 1)
        self.equal(f"delta.`{path}`", f"({query})")

    def _path(self, table: str) -> str:
        (row,) = self.spark.sql(f"describe detail {table}").collect()
        return str(row["location"])

    def _committed(self, table: str, count: int) -> None:
        """A table has so many commits."""
        history = self.on_spark(self.spark.sql(f"describe history {table}").collect)
        assert len(history) == count, [(row["operation"], row["operationParameters"]) for row in history]
