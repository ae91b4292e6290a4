"""Run parts of Spark's plans in the TaskManagers: chosen when Spark plans, started when Spark executes them.

`SparkAbove.java` passes on every plan that Spark is about to plan. This module finds the largest parts that the engine
runs exactly as Spark does, and chooses those that pay. A node in Spark's plan stands for each of them. When Spark
executes the node, the part runs to its end, and then Spark's tasks read its rows. No task waits for a query, and no
query for a task: parts that Spark has to run first (leaves) have run before.

If anything fails while a plan is examined, Spark plans the query as usual.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession

from wallaby.above.choosing import ALWAYS, Choosing, ConsideredPart, OfferFacts
from wallaby.above.dataframe import KeptDataFrame
from wallaby.above.error_conversion import raise_ours
from wallaby.above.handover_types import as_expected, handed_schema
from wallaby.above.keys import WriteKey
from wallaby.above.objects.keys import ObjectKey
from wallaby.above.partitions import divided
from wallaby.above.reader import KeptPartition, KeptReading, reads
from wallaby.above.subplan import (
    CONSIDERED,
    HAS_RUN,
    LEFT_WHILE_RUNNING,
    NOT_LOOKED_AT,
    JavaBiFunction,
    JavaFunction,
    Subplan,
    is_sparks,
    said_to_spark,
    text_of,
)
from wallaby.above.writing import Writing
from wallaby.catalyst.janino import class_beside, load_class, new_object
from wallaby.catalyst.jvm import dotted, plan_of
from wallaby.catalyst.spark_versions import arrow_schema
from wallaby.config.settings import Settings
from wallaby.errors import ConfigurationError, KeptResultError, QueryError, WallabyError
from wallaby.lineage.graph import StageKind
from wallaby.lineage.tolerance import Tolerance
from wallaby.observe.about import About
from wallaby.plan.leaf import has_work
from wallaby.reading.defect import DEFECTS
from wallaby.reading.placement import is_placed
from wallaby.relations.reason import Reason
from wallaby.results.following import FollowedQueries, FollowedQuery
from wallaby.results.kept import KeptRows, LocatedResult
from wallaby.results.lifetime import QueryLifetime
from wallaby.results.record import Where
from wallaby.runner import QueryRunner, Site
from wallaby.spark.bypass import engine_first, spark_alone
from wallaby.spark.cluster import Cluster
from wallaby.spark.query_jobs import QueryJobs
from wallaby.worker.bootstrap import ReaderAccess

if TYPE_CHECKING:
    from pyspark import SparkContext

_log = logging.getLogger(__name__)
#: How long one call to the JVM waits for rows that have become unreachable.
WAIT_MS: Final = 30_000
END_SECONDS: Final = 2.0
_NO_LINEAGE: Final = Reason(
    "policy",
    "under it, results cannot stay with the TaskManagers",
    "choose the policy lineage, stagewise or checkpoint+lineage",
)
#: As `SparkAbove.java` calls a plan that writes something.
_COMMAND: Final = "command"
_PLACED: Final = Reason(
    "Repartition",
    "rows that stay are divided in another way",
    "keep the rows as they are, and repartition the DataFrame over them",
)
_PROFILER: Final = "spark.sql.pyspark.udf.profiler"
_LARGE_TYPES: Final = "spark.sql.execution.arrow.useLargeVarTypes"


class UnkeepableError(Exception):
    """Spark has to run a query, so its rows cannot stay here. The engine never lets this error out."""

    def __init__(self, reasons: tuple[Reason, ...]) -> None:
        super().__init__("; ".join(map(str, reasons)))
        self.reasons = reasons


class Subplans:
    """The sub-plans of one engine, and the rows of those that have run."""

    def __init__(
        self,
        context: SparkContext,
        runner: QueryRunner,
        jobs: QueryJobs,
        site: Callable[[], Site],
        access: Callable[[], ReaderAccess],
        settings: Callable[[Mapping[str, str]], Settings],
        tolerance: Tolerance,
        recording: FollowedQueries,
    ) -> None:
        """`site` is what queries are planned for, `access` how tasks reach rows.

        `settings` are those of a session with these `spark.wallaby.*` entries.
        """
        self._context = context
        self._runner = runner
        self._jobs = jobs
        self._site = site
        self._access = access
        self._settings = settings
        self._recording = recording
        #: The reasons why rows cannot stay here, for any query; mostly none.
        self._never = () if tolerance.keeps_results else (_NO_LINEAGE,)
        self._lock = threading.Lock()
        self._begun: dict[str, Subplan] = {}
        self._kept: dict[str, KeptRows] = {}
        self._java: Any = None
        self._rdds: Any = None
        self._thread: threading.Thread | None = None
        self._writing = Writing(context, runner, jobs, recording, self._subplan)

    # --- in Spark's sessions -------------------------------------------------------------------------

    def install(self, session: SparkSession) -> None:
        """From now on, examine the plans of a session and of sessions that are created from it."""
        java = self._connected()
        java.install(session._jsparkSession)
        java.installInNewSessions(session._jsparkSession)

    def uninstall(self, session: SparkSession) -> None:
        """Stop examining the plans of a session."""
        if self._java is not None:
            self._java.uninstall(session._jsparkSession)

    def _connected(self) -> Any:
        with self._lock:
            if self._java is None:
                gateway, jvm = self._context._gateway, self._context._jvm
                assert gateway is not None
                assert jvm is not None
                ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
                jsc: Any = self._context._jsc
                above = load_class(jvm, "wallaby.above", "SparkAbove")
                self._rdds = new_object(gateway, jvm, class_beside(above, "KeptRdds"), jsc.sc())
                self._rdds.connect(JavaFunction(self._is_there))
                nodes = new_object(gateway, jvm, class_beside(above, "KeptPlans"), self._rdds)
                nodes.connect(JavaFunction(self._executed))
                writer = new_object(gateway, jvm, class_beside(above, "KeptWrites"), nodes)
                writer.connect(JavaFunction(self._writing.asked))
                self._java = new_object(gateway, jvm, above, nodes, writer)
                self._java.connect(JavaBiFunction(self._offered), JavaFunction(self._doubted))
                raise_ours()
                self._thread = threading.Thread(target=self._release_all, name="wallaby-kept", daemon=True)
                self._thread.start()
        return self._java

    def close(self) -> None:
        """Accept no more sub-plans. Kept rows are released with the engine."""
        if self._java is None:
            return
        try:
            self._rdds.close()
        except (Py4JError, OSError) as error:
            _log.debug("cannot remove sub-plans from Spark: %s", type(error).__name__)
        if self._thread is not None:
            self._thread.join(END_SECONDS)

    # --- DataFrames over kept rows -------------------------------------------------------------------

    def dataframe(self, df: DataFrame) -> KeptDataFrame:
        """Make a DataFrame over the rows of a query, which stay in the TaskManagers from its first action on.

        Raises:
            UnkeepableError: Spark has to run the query.
        """
        java, site = self._connected(), self._site()
        settings = self._settings(self._jobs.settings(df.sparkSession))
        java.installForKept(df.sparkSession._jsparkSession)
        if self._never:
            raise UnkeepableError(self._never)
        query = df
        planned = site.planner.plan(query, settings, ending=StageKind.KEEP)
        if planned.leaves:
            query = self._unadapted(df)
            planned = site.planner.plan(query, settings, ending=StageKind.KEEP)
        if planned.physical is None:
            raise UnkeepableError(planned.reasons)
        if is_placed(plan_of(df).root):
            raise UnkeepableError((_PLACED,))
        subplan = Subplan(site, settings, planned, planned.physical, query, is_whole=True)
        number = f"s-{secrets.token_hex(16)}"
        with self._lock:
            self._begun[number] = subplan
        jdf = java.dataframe(df.sparkSession._jsparkSession, df._jdf, number, text_of(subplan.physical))
        return KeptDataFrame(jdf, df, partial(self._forget, number), partial(self._rdds.isStaying, number))

    def _forget(self, number: str) -> None:
        """Release the rows of a DataFrame."""
        if self._java is not None:
            self._rdds.forget(number)

    # --- writes ---------------------------------------------------------------------------------------

    @contextmanager
    def here(self, df: DataFrame, key: WriteKey | ObjectKey | None) -> Iterator[None]:
        """In this block, let the TaskManagers run as much as they can of this thread's actions."""
        self._connected().installForced(df.sparkSession._jsparkSession)
        with engine_first(self._context), nullcontext() if key is None else self._writing.keyed(key):
            yield

    # --- choosing ------------------------------------------------------------------------------------

    def _doubted(self, asked: str) -> str | None:
        """Return why settings are invalid, so that a command is refused; for any other plan, only warn."""
        kind, *words = asked.split("\0")
        try:
            self._settings(dict(zip(words[::2], words[1::2], strict=True)))
        except ConfigurationError as error:
            if kind == _COMMAND:
                return f"{error.what} {error.fix}"
            _log.warning(NOT_LOOKED_AT, error)
        except WallabyError as error:  # the engine was closed meanwhile
            _log.debug(NOT_LOOKED_AT, error)
        return None

    def _offered(self, plan: Any, facts: str) -> str | None:
        """Choose the parts of a plan that run here, before Spark plans it: their paths, ids and descriptions."""
        try:
            chosen = self._chosen(plan, OfferFacts.read(facts))
        except (WallabyError, Py4JError, OSError, MemoryError, *DEFECTS) as error:
            _log.info(NOT_LOOKED_AT, error)
            return None
        return "\0".join(word for part in chosen for word in part) if chosen else None

    def explain(self, df: DataFrame) -> list[str]:
        """Say which parts of a Spark query would run in the TaskManagers and which would not, and why."""
        java = self._connected()
        plan = df._jdf.queryExecution().optimizedPlan()
        facts = OfferFacts.read(java.facts(df.sparkSession._jsparkSession, plan))
        return [found.said for found in self._considered(df.sparkSession._jsparkSession, plan, facts)]

    def _chosen(self, plan: Any, facts: OfferFacts) -> list[tuple[str, str, str]]:
        chosen: list[tuple[str, str, str]] = []
        for found in self._considered(None, plan, facts):
            _log.log(logging.INFO if has_work(found.part.relation) else logging.DEBUG, CONSIDERED, found.said)
            if found.subplan is not None:
                number = f"s-{secrets.token_hex(16)}"
                with self._lock:
                    self._begun[number] = found.subplan
                chosen.append((dotted(found.part.path), number, text_of(found.subplan.physical)))
        return chosen

    def _considered(self, session: Any, plan: Any, facts: OfferFacts) -> Iterator[ConsideredPart]:
        """The parts of a plan. `session` is the JVM's session of the plan; None for the one that is planning it now."""
        settings = self._settings(facts.entries)
        if facts.forced:
            settings = replace(settings, below=ALWAYS)
        choosing = Choosing(self._java, self._site(), settings, self._never, self._as_query)
        return choosing.considered(session, plan, facts.written)

    def _as_query(self, plan: Any, path: str) -> DataFrame:
        """A part of a plan as a query of its own, whose plan Spark does not adapt while it runs."""
        with spark_alone(self._context):
            return self._of_java(self._java.unadapted(self._java.query(plan, path)))

    def _subplan(self, run: Any) -> Subplan:
        """The sub-plan that Spark executes, with its query, which is made when it is first needed."""
        number = run.id()
        subplan = self._begun[number]
        if subplan.df is None:
            with spark_alone(self._context):
                subplan = replace(subplan, df=self._of_java(run.query()))
            with self._lock:
                self._begun[number] = subplan
        return subplan

    def _of_java(self, query: Any) -> DataFrame:
        return DataFrame(query, SparkSession(self._context, query.sparkSession()))

    # --- running -------------------------------------------------------------------------------------

    def _executed(self, run: Any) -> Any:
        """Run the sub-plan of a node that Spark executes; return a Spark plan that reads its rows."""
        answer = self._context._jvm.java.util.ArrayList()  # type: ignore[union-attr]
        subplan = self._begun[run.id()]
        found: tuple[Any, ...]
        try:
            subplan = self._subplan(run)
            found = self._run(subplan) if subplan.handed_over else (run.onSpark(0), None)
        except QueryError as error:
            if not is_sparks(error, subplan.settings):
                return self._said(answer, error, subplan)
            _log.info(LEFT_WHILE_RUNNING, error.what)
            found = (run.onSpark(0), None)
        except Py4JError as error:  # Spark fails at the part as a query of its own, but not within its query
            _log.info(LEFT_WHILE_RUNNING, error)
            found = (run.onSpark(0), None)
        except WallabyError as error:
            return self._said(answer, error, subplan)
        for each in found:
            answer.add(each)
        return answer

    def _said(self, answer: Any, error: WallabyError, subplan: Subplan) -> Any:
        """An error for Spark, with the number of partitions that the rows would have had at most."""
        said_to_spark(answer, error, subplan).add(self._slots(subplan.site.workers))
        return answer

    def _run(self, subplan: Subplan) -> tuple[Any, ...]:
        where = Where.NATIVE if subplan.is_whole else Where.PART
        with self._recording.part(partial(self._about, subplan), where) as record:
            record.partly_if(subplan.planned.leaf_reasons)
            return self._run_recorded(subplan, record)

    def _about(self, subplan: Subplan) -> About:
        """Describe a sub-plan as its user knows it; if Spark does not know its text, by what its stages do."""
        known = self._jobs.about(subplan.query)
        return known if known.sql or known.line else replace(known, description=text_of(subplan.physical))

    def _run_recorded(self, subplan: Subplan, record: FollowedQuery) -> tuple[Any, ...]:
        if not subplan.site.leaves_slot:
            raise _no_slot()
        began = time.monotonic()
        begin_job = partial(self._jobs.begin, subplan.query.sparkSession, record.about)
        lifetime = QueryLifetime(begin_job, subplan.settings.timeout)
        kept = self._runner.keep(
            subplan.site,
            subplan.query,
            subplan.planned,
            subplan.physical,
            subplan.settings,
            lifetime,
            observed=bool(subplan.settings.event_log_dir),
        )
        kept.await_whole()
        seconds = time.monotonic() - began
        try:
            plan, rows, size_bytes = self._reading(kept, subplan)
        except BaseException:
            kept.release()
            raise
        query = str(kept.query)
        with self._lock:
            self._kept[query] = kept
        record.part_ran(kept.collected, rows)
        _log.debug(HAS_RUN, text_of(subplan.physical), rows, seconds)
        losses = 0
        if kept.collected is not None:
            losses, kept.collected.on_recovery = kept.collected.figures.recoveries, partial(self._lost, query)
        return plan, query, rows, size_bytes, int(seconds * 1000), losses

    def _lost(self, query: str) -> None:
        """Show in Spark's UI that a TaskManager was lost while kept rows were there to be read."""
        threading.Thread(target=self._show_loss, args=(query,), name="wallaby-loss", daemon=True).start()

    def _show_loss(self, query: str) -> None:
        try:
            self._rdds.lose(query)
        except (Py4JError, OSError) as error:
            _log.debug("cannot show a loss in Spark's UI: %s", type(error).__name__)

    def _reading(self, kept: KeptRows, subplan: Subplan) -> tuple[Any, int, int]:
        """Make a Spark plan that reads kept rows; with the number of rows and of bytes."""
        located = kept.locate()
        session = subplan.query.sparkSession
        schema = handed_schema(subplan.query.schema)
        large = str(session.conf.get(_LARGE_TYPES, "false")).lower() == "true"
        reading = KeptReading(
            located.query,
            self._access(),
            self._divided(located, subplan.site.workers),
            located.addresses,
            arrow_schema(schema, large=large),
            subplan.settings.stall_timeout or subplan.settings.no_workers_timeout,
        )
        count = len(reading.partitions)
        with spark_alone(self._context):
            rows = self._unprofiled(session).range(0, count, 1, count).mapInArrow(reads(reading), schema)
            plan = as_expected(rows, subplan.query.schema)._jdf.queryExecution().executedPlan()
        return plan, located.rows, located.size_bytes

    def _unprofiled(self, session: SparkSession) -> SparkSession:
        """The session, or a copy that profiles no functions: the function that reads rows is not the user's."""
        if session.conf.get(_PROFILER, None) is None:
            return session
        own = SparkSession(self._context, session._jsparkSession.cloneSession())
        own.conf.unset(_PROFILER)
        return own

    def _divided(self, located: LocatedResult, workers: int) -> tuple[KeptPartition, ...]:
        is_local = Cluster(self._context).is_local
        return divided(located.outputs, self._slots(workers), no_more=is_local)

    def _slots(self, workers: int) -> int:
        """The number of Spark's slots without a TaskManager."""
        slots = self._context.defaultParallelism
        return max(slots - workers, 1) if Cluster(self._context).is_local else slots

    def _unadapted(self, df: DataFrame) -> DataFrame:
        """The same query without adaptive execution."""
        return self._of_java(self._java.unadapted(df._jdf))

    # --- releasing -----------------------------------------------------------------------------------

    def _release_all(self) -> None:
        """Release unreachable rows until the engine closes."""
        while True:
            try:
                gone = self._rdds.next(WAIT_MS)
            except (Py4JError, OSError) as error:
                _log.debug("stopped asking Spark for unreachable rows: %s", type(error).__name__)
                return
            if gone == "":
                return
            if gone is not None:
                self._let_go(gone)

    def collect(self) -> None:
        """Let the JVM look for unreachable rows now. They are released soon after."""
        if self._rdds is not None:
            self._rdds.collect()

    def _let_go(self, gone: str) -> None:
        """Release a query whose rows have become unreachable, or a sub-plan that can no longer be executed."""
        with self._lock:
            kept = self._kept.pop(gone, None)
            self._begun.pop(gone, None)
        if kept is not None:
            kept.release()

    def _is_there(self, query: str) -> bool:
        """Can kept rows be read?"""
        with self._lock:
            kept = self._kept.get(query)
        return kept is not None and kept.is_there

    @property
    def kept(self) -> Mapping[str, KeptRows]:
        """The kept rows, by query."""
        with self._lock:
            return dict(self._kept)


def _no_slot() -> KeptResultError:
    return KeptResultError(
        "Spark's tasks cannot read rows from the TaskManagers, because TaskManagers occupy every slot "
        "(spark.wallaby.exclusive).",
        fix="Collect the rows with engine.run, or leave Spark a slot: use fewer TaskManagers or more cores.",
    )
