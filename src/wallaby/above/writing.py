"""Let the TaskManagers write what Spark was asked to write, publish it, and tell Spark which files they made.

`KeptWrites.java` takes the place of Spark's own writer and calls this module when Spark executes the write. The answer
is the manifest of a completed query, or an error, or nothing; then Spark writes the rows itself. Java calls again when
Spark commits the write, or aborts it.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from wallaby.above.keys import WriteKey
from wallaby.above.objects.keys import ObjectKey
from wallaby.above.objects.publication import UnsuitableBucketError
from wallaby.above.subplan import HAS_RUN, LEFT_WHILE_RUNNING, Subplan, is_sparks, said_to_spark, text_of
from wallaby.above.writes import MadeFiles, Publishing, WriteOrder, finished, rows_for, target_of
from wallaby.errors import QueryError, WallabyError, WriteError
from wallaby.relations.reason import Reason
from wallaby.relations.target import WriteTarget
from wallaby.results.following import FollowedQueries
from wallaby.results.lifetime import QueryLifetime
from wallaby.results.record import Where
from wallaby.runner import QueryRunner
from wallaby.spark.bypass import local_property, spark_alone
from wallaby.spark.query_jobs import QueryJobs
from wallaby.tables.parquet_writing import cannot_write

if TYPE_CHECKING:
    from pyspark import SparkContext

_log = logging.getLogger(__name__)
#: The local property of Spark that identifies the key of this thread's write; `KeptWrites.java` reads it.
KEY: Final = "spark.wallaby.write.key"
SPARK_WRITES: Final = "Spark writes the rows that the TaskManagers compute: %s"


class Writing:
    """The writes of one engine."""

    def __init__(
        self,
        context: SparkContext,
        runner: QueryRunner,
        jobs: QueryJobs,
        recording: FollowedQueries,
        subplan: Callable[[Any], Subplan],
    ) -> None:
        """`subplan` finds the part of a query that Spark executes."""
        self._context = context
        self._runner = runner
        self._jobs = jobs
        self._recording = recording
        self._subplan = subplan
        self._keys: dict[str, WriteKey | ObjectKey] = {}
        self._publications: dict[str, Publishing] = {}

    @contextmanager
    def keyed(self, key: WriteKey | ObjectKey) -> Iterator[None]:
        """Give this thread's writes a key: they are noted before Spark publishes, and Spark writes no rows itself."""
        number = secrets.token_hex(8)
        self._keys[number] = key
        try:
            with local_property(self._context, KEY, number):
                yield
        finally:
            del self._keys[number]

    def asked(self, question: Any) -> Any:
        """Answer a call from Java: a word, then facts. An answer that begins with a string is an error."""
        word, *facts = question
        match word:
            case "write":
                return self._written(WriteOrder.read(facts))
            case "refuse":  # Spark is about to write although there is a key
                return self._said(_only_here())
            case _:
                return self._committed(word, *facts)

    def _written(self, order: WriteOrder) -> Any:
        """Carry out a write; return whether one step publishes it, its files and figures. None leaves it to Spark."""
        subplan = self._subplan(order.run)
        try:
            made = self._write(order, subplan)
        except QueryError as error:
            if not is_sparks(error, subplan.settings):
                return self._said(error, subplan)
            _log.info(LEFT_WHILE_RUNNING, error.what)
            return None
        except WallabyError as error:
            return self._said(error, subplan)
        if made is None:
            return None
        files = self._list(*(self._list(*file) for file in made.files))
        return self._list(self._publications[order.job].is_whole, files, self._list(*made.figures))

    def _committed(self, word: str, job: str) -> Any:
        """Publish a write, finish it, or abandon it."""
        publication = self._publications.get(job)
        if publication is None:
            return None
        try:
            if word == "publish":
                publication.publish()
                return None
            del self._publications[job]
            if word == "finish":
                publication.finish()
            else:
                publication.abandon()
        except WallabyError as error:
            return self._said(error)
        except OSError as error:
            return self._said(cannot_write(str(publication.folder), error))
        return None

    def _write(self, order: WriteOrder, subplan: Subplan) -> MadeFiles | None:
        key = None if order.key is None else self._keys.get(order.key)
        target = target_of(order, subplan.query, subplan.settings.write_file_size)
        if isinstance(target, Reason):
            _leave(key, str(target))
            return None
        try:
            publication = order.publication(key)
        except UnsuitableBucketError as error:
            _leave(key, str(error))
            return None
        try:
            made = self._made(order, subplan, replace(target, folder=str(publication.folder)), key)
            if made is None:
                publication.abandon()
                return None
            publication.stage([(name, size_bytes) for name, _, size_bytes in made.files])
        except BaseException:
            publication.abandon()
            raise
        self._publications[order.job] = publication
        return made

    def _made(
        self, order: WriteOrder, subplan: Subplan, target: WriteTarget, key: WriteKey | ObjectKey | None
    ) -> MadeFiles | None:
        """Run the query and return its files; None if Spark has to run it."""
        with spark_alone(self._context):
            df = rows_for(order, subplan.query)
        planned = subplan.site.planner.plan(df, subplan.settings, ending=target)
        if planned.physical is None:
            _leave(key, "; ".join(map(str, planned.reasons)))
            return None
        with self._recording.part(partial(self._jobs.about, subplan.query), Where.NATIVE) as record:
            record.partly_if(planned.leaf_reasons)
            began = time.monotonic()
            begin_job = partial(self._jobs.begin, df.sparkSession, record.about)
            run = self._runner.write(
                subplan.site,
                df,
                planned,
                planned.physical,
                subplan.settings,
                QueryLifetime(begin_job, subplan.settings.timeout),
                target,
                observed=bool(subplan.settings.event_log_dir),
            )
            files = finished(target, run.await_rows())
            losses = 0 if run.collected is None else run.collected.figures.recoveries
            made = MadeFiles(tuple(files), time.monotonic() - began, losses)
            record.part_ran(run.collected, made.rows)
        _log.debug(HAS_RUN, text_of(planned.physical), made.rows, made.seconds)
        return made

    def _list(self, *items: Any) -> Any:
        made = self._context._jvm.java.util.ArrayList()  # type: ignore[union-attr]
        for item in items:
            made.add(item)
        return made

    def _said(self, error: WallabyError, subplan: Subplan | None = None) -> Any:
        return said_to_spark(self._list(), error, subplan)


def _leave(key: WriteKey | ObjectKey | None, why: str) -> None:
    """Leave a write to Spark, unless it has a key."""
    if key is not None:
        raise _only_here(why)
    _log.info(SPARK_WRITES, why)


def _only_here(why: str = "`engine.explain` says which part of its query stays on Spark") -> WriteError:
    return WriteError(
        f"The TaskManagers cannot make this write, which has a key: {why}.",
        fix="Leave the key out, or write Parquet files from a query that runs wholly in the TaskManagers.",
    )
