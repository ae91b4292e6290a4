"""What the checks of Delta Lake and Iceberg share: queries compared with Spark, and writes that are observed."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from wallaby.engine import Engine
from wallaby.errors import InvalidArgumentError
from wallaby_lab.compare import require_same

#: Rows of every kind of value that both formats have.
ROWS: Final = """
    select id, cast(id % 7 as int) k, concat('s', id % 100) s, cast(id as decimal(12, 2)) m, id / 3 d, id % 2 = 0 b,
           date_add(date'2024-01-01', cast(id % 50 as int)) t, timestamp_seconds(id * 1000) at,
           array(id, id + 1) a, named_struct('x', id, 'y', concat('y', id)) o, map('k', id) p,
           if(id % 5 = 0, null, cast(concat('z', id) as binary)) z
    from range({begin}, {end})
"""
GROUPED: Final = (
    "select k, count(*) n, sum(id) i, max(s) s, sum(m) m, min(t) t, max(at) at from {table} group by k"
)
EACH: Final = "select id, k, s, m, b, t, at, a, o, o.y, z from {table} order by id"
#: Takes rows from a query, of which a part can run here.
MERGE: Final = """
    merge into {table} t
    using (select id, max(s) s, count(*) n from {kinds} where id % 10 = 1 or id < 50 group by id) u on t.id = u.id
    when matched and u.id % 3 = 0 then delete
    when matched then update set s = concat(t.s, u.s), n = u.n
    when not matched then insert (id, s, n) values (u.id, u.s, u.n)
"""
#: A write long enough to lose a TaskManager meanwhile.
LONG: Final = "select id % 5000 g, count(*) n, sum(id) i, max(s) s from {table} group by 1"
#: The keys of two writers at once, which are also added to the keys of their rows.
WRITERS: Final = (100, 200)


class LakeChecks:
    """Steps over one enabled session; each compares with the same Spark."""

    def __init__(self, spark: SparkSession, engine: Engine, folder: Path) -> None:
        self.spark = spark
        self.engine = engine
        self.folder = folder

    def steps(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """The name of what each step shows, and the step."""
        raise NotImplementedError

    def sql(self, command: str) -> None:
        """Run a command."""
        self.spark.sql(command)

    def native(self, query: str) -> None:
        """All of a query runs here, with Spark's answer."""
        df = self.spark.sql(query)
        reasons = self.engine.fallback_reasons(df)
        assert reasons == [], f"{query}: {reasons}"
        result = self.engine.run(df)
        require_same(result.arrow(), self.on_spark(self.spark.sql(query).toArrow))
        assert result.native, query

    def left(self, query: str, why: str) -> None:
        """Spark has to run a part of a query, with this reason; the answer is Spark's."""
        df = self.spark.sql(query)
        reasons = self.engine.fallback_reasons(df)
        assert any(why in reason for reason in reasons), f"{query}: {reasons}"
        require_same(self.engine.run(df).arrow(), self.on_spark(self.spark.sql(query).toArrow))

    def parts(self, act: Callable[[], Any]) -> None:
        """A part of what an action does runs in the TaskManagers."""
        before = len(self.engine.history())
        act()
        ran = [str(each.where) for each in self.engine.history()[before:]]
        assert any(where in ("part", "native") for where in ran), ran

    def refused(self, write: Callable[[], None]) -> None:
        """A write with a key that nobody would note is refused."""
        try:
            write()
        except InvalidArgumentError:
            return
        raise AssertionError("the write was not refused")

    def on_spark(self, act: Callable[[], Any]) -> Any:
        """Run an action on Spark alone."""
        self.spark.conf.set("spark.wallaby.enabled", "false")
        try:
            return act()
        finally:
            self.spark.conf.unset("spark.wallaby.enabled")

    def equal(self, table: str, other: str) -> None:
        """Two tables have the same rows, as Spark reads them."""
        ours, theirs = (
            self.on_spark(self.spark.sql(f"select * from {each}").toArrow) for each in (table, other)
        )
        ours = ours.select(theirs.column_names)
        require_same(ours, theirs.cast(ours.schema))  # a table does not keep which columns are never NULL
        assert ours.num_rows > 0

    def at_once(self, append: Callable[[int], None]) -> None:
        """Two threads append at once."""
        failed: list[BaseException] = []

        def run(key: int) -> None:
            try:
                append(key)
            except BaseException as error:  # noqa: BLE001 - told below
                failed.append(error)

        threads = [threading.Thread(target=partial(run, key)) for key in WRITERS]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed, failed

    @contextmanager
    def killing(self) -> Iterator[None]:
        """Kill a TaskManager once a part of what runs in the block has begun."""
        pid = self.engine.workers()[0].pid
        killed, over = threading.Event(), threading.Event()

        def kill() -> None:
            while not over.is_set():
                if self.engine.inspection.queries_in_store():
                    os.kill(pid, signal.SIGKILL)
                    killed.set()
                    return
                time.sleep(0.005)

        thread = threading.Thread(target=kill, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
        assert killed.is_set(), "no part ran here"
