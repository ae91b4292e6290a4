"""Sub-plans of Spark's plans that run in the TaskManagers: offered by Spark's planner, begun when Spark executes them.

`SparkAbove.java` offers every plan that Spark is about to plan, as a whole. Here the largest parts of it are found that
the engine runs exactly as Spark does, and those of them are chosen that are worth it. When Spark executes the node that
stands for one, it is run to its end; then Spark's tasks read its rows. No task waits for a query, and no query for a
task: the parts that Spark has to run first (leaves) have run before.

Whatever goes wrong while a plan is looked at, Spark plans it as if nobody had looked.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from wallaby.above.dataframe import KeptDataFrame
from wallaby.above.partitions import divided
from wallaby.above.reader import KeptPartition, KeptReading, reads
from wallaby.above.thrown import raise_ours
from wallaby.catalyst.java import load_class, new_object
from wallaby.catalyst.jvm import dotted, part_in, plan_in
from wallaby.config.settings import Settings
from wallaby.errors import DoubtfulValueError, HandOverError, QueryError, WallabyError
from wallaby.errors.text import write_error
from wallaby.lineage.tolerance import Tolerance
from wallaby.plan.choice import worth
from wallaby.plan.leaf import has_work, not_worthwhile
from wallaby.plan.physical import PhysicalPlan
from wallaby.plan.planned import Planned
from wallaby.reading.defect import DEFECTS
from wallaby.reading.parts import NativePart
from wallaby.reading.reader import native_parts
from wallaby.relations.reason import Reason
from wallaby.results.kept import KeptPlaces, KeptRows
from wallaby.runner import QueryRunner, Site
from wallaby.spark.bypass import spark_alone
from wallaby.spark.cluster import Cluster
from wallaby.spark.query_jobs import QueryJobs
from wallaby.worker.bootstrap import ReaderAccess

if TYPE_CHECKING:
    from pyspark import SparkContext

_log = logging.getLogger(__name__)
#: How long one call waits for rows that nobody reads any more.
WAIT_MS: Final = 30_000
END_SECONDS: Final = 2.0
_NO_LINEAGE: Final = Reason(
    "policy",
    "its results do not stay with the TaskManagers under their lineage",
    "choose the policy lineage, stagewise or checkpoint+lineage",
)
#: What the log says of sub-plans; whoever proves that one has run looks for it.
CONSIDERED: Final = "a part of a query %s"
NOT_LOOKED_AT: Final = "a plan was left to Spark: %s"
HAS_RUN: Final = "a part of a query has run: %s (%d rows in %.2f s)"
HAS_FAILED: Final = "a part of a query has failed: %s (%s)"
LEFT_WHILE_RUNNING: Final = "left to Spark while running: %s"
_LARGE_TYPES: Final = "spark.sql.execution.arrow.useLargeVarTypes"


@dataclass(frozen=True, slots=True)
class Subplan:
    """A part of a query that runs here: as a query of its own, with the plan that was made for it."""

    df: DataFrame
    site: Site
    settings: Settings
    planned: Planned
    physical: PhysicalPlan


class UnkeepableError(Exception):
    """Spark has to run a query, so its rows cannot stay here. It never leaves the engine."""

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
        settings: Callable[[SparkSession], Settings],
        tolerance: Tolerance,
    ) -> None:
        """`site` is where queries are planned for, `access` how its rows are read, `settings` those of a session."""
        self._context = context
        self._runner = runner
        self._jobs = jobs
        self._site = site
        self._access = access
        self._settings = settings
        #: Why the rows of no query can stay, if they cannot.
        self._never = () if tolerance.keeps_results else (_NO_LINEAGE,)
        self._lock = threading.Lock()
        self._begun: dict[str, Subplan] = {}
        self._kept: dict[str, KeptRows] = {}
        self._java: Any = None
        self._rdds: Any = None
        self._thread: threading.Thread | None = None

    # --- in Spark's sessions -------------------------------------------------------------------------

    def install(self, session: SparkSession) -> None:
        """Have what a session plans from now on, and the sessions that are made from it, offered."""
        java = self._connected()
        java.install(session._jsparkSession)
        java.installInNewSessions(session._jsparkSession)

    def uninstall(self, session: SparkSession) -> None:
        """Leave a session as it was."""
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
                rdds = load_class(jvm, "wallaby.above", "KeptRdds")
                plans = load_class(jvm, "wallaby.above", "KeptPlans", above="KeptRdds")
                above = load_class(jvm, "wallaby.above", "SparkAbove", above="KeptPlans")
                self._rdds = new_object(gateway, jvm, rdds, jsc.sc())
                nodes = new_object(gateway, jvm, plans, self._rdds)
                nodes.connect(_Called(self._executed))
                self._java = new_object(gateway, jvm, above, nodes)
                self._java.connect(_Called(self._offered))
                raise_ours()
                self._thread = threading.Thread(target=self._release_all, name="wallaby-kept", daemon=True)
                self._thread.start()
        return self._java

    def close(self) -> None:
        """Take no more sub-plans. The rows that stay go with the engine."""
        if self._java is None:
            return
        try:
            self._rdds.close()
        except (Py4JError, OSError) as error:
            _log.debug("Spark did not let go of sub-plans: %s", type(error).__name__)
        if self._thread is not None:
            self._thread.join(END_SECONDS)

    # --- DataFrames over rows that stay --------------------------------------------------------------

    def dataframe(self, df: DataFrame) -> KeptDataFrame:
        """A DataFrame over the rows of a query, which stay from the first action on.

        Raises:
            UnkeepableError: Spark has to run the query.
        """
        java, site, settings = self._connected(), self._site(), self._settings(df.sparkSession)
        java.installForKept(df.sparkSession._jsparkSession)
        if self._never:
            raise UnkeepableError(self._never)
        query = df
        planned = site.planner.plan(query, settings, keeps=True)
        if planned.leaves:
            query = self._unadapted(df)
            planned = site.planner.plan(query, settings, keeps=True)
        if planned.physical is None:
            raise UnkeepableError(planned.reasons)
        subplan = Subplan(query, site, settings, planned, planned.physical)
        number = f"s-{secrets.token_hex(16)}"
        with self._lock:
            self._begun[number] = subplan
        jdf = java.dataframe(df.sparkSession._jsparkSession, df._jdf, number, _text(subplan.physical))
        return KeptDataFrame(jdf, df, partial(self._forget, number))

    def _forget(self, number: str) -> None:
        """The rows of a DataFrame are not wanted any more."""
        if self._java is not None:
            self._rdds.forget(number)

    # --- choosing ------------------------------------------------------------------------------------

    def _offered(self, plan: Any) -> Any:
        """Spark is about to plan this: the parts that run here, as paths, ids and texts."""
        try:
            chosen = self._chosen(plan)
        except (WallabyError, Py4JError, *DEFECTS) as error:
            _log.info(NOT_LOOKED_AT, error)
            return None
        answer = self._context._jvm.java.util.ArrayList()  # type: ignore[union-attr]
        for path, number, text in chosen:
            each = self._context._jvm.java.util.ArrayList()  # type: ignore[union-attr]
            for word in (path, number, text):
                each.add(word)
            answer.add(each)
        return answer

    def explain(self, df: DataFrame) -> list[str]:
        """Which parts of a query that Spark runs would run in the TaskManagers, and which not, each with the reason."""
        self._connected()
        plan = df._jdf.queryExecution().optimizedPlan()
        said: list[str] = []
        for part in native_parts(
            plan_in(df.sparkSession._jsparkSession, plan), lambda path: part_in(plan, path)
        ):
            self._subplan(plan, df.sparkSession, part, said)
        return said

    def _chosen(self, plan: Any) -> list[tuple[str, str, str]]:
        jvm: Any = self._context._jvm
        active = jvm.org.apache.spark.sql.classic.SparkSession.active()
        session = SparkSession(self._context, active)
        text = plan_in(active, plan)
        parts = native_parts(text, lambda path: part_in(plan, path))
        chosen: list[tuple[str, str, str]] = []
        said: list[str] = []
        for part in parts:
            subplan = self._subplan(plan, session, part, said)
            _log.log(logging.INFO if has_work(part.relation) else logging.DEBUG, CONSIDERED, said[-1])
            if subplan is not None:
                number = f"s-{secrets.token_hex(16)}"
                with self._lock:
                    self._begun[number] = subplan
                chosen.append((dotted(part.path), number, _text(subplan.physical)))
        return chosen

    def _subplan(self, plan: Any, session: SparkSession, part: NativePart, said: list[str]) -> Subplan | None:
        """A part as a query of its own, if it is worth it; `said` gets a line about why it is or is not."""
        what = type(part.relation).__name__.lower()
        if self._never:
            said.append(f"stays on Spark: {what} ({self._never[0]})")
            return None
        if not has_work(part.relation):
            said.append(f"stays on Spark: {what} (it has neither a join nor an aggregation nor a sort)")
            return None
        if not self._java.readsMuch(plan, dotted(part.path)):
            said.append(f"stays on Spark: {what} (it reads too little to be worth it)")
            return None
        settings, site = self._settings(session), self._site()
        if part.leaves and (why := not_worthwhile(part.relation, part.leaves, settings.leaf_minimum)):
            said.append(f"stays on Spark: {what} ({why})")
            return None
        with spark_alone(self._context):
            df = DataFrame(self._java.query(plan, dotted(part.path)), session)
            if part.leaves:
                df = self._unadapted(df)
        planned = site.planner.plan(df, settings, keeps=True)
        if planned.physical is None:
            said.append(f"stays on Spark: {what} ({'; '.join(map(str, planned.reasons))})")
            return None
        found = worth(planned.physical)
        if settings.below != "always" and not found.is_taken:
            said.append(f"stays on Spark: {what} ({found})")
            return None
        said.append(f"runs in the TaskManagers: {_text(planned.physical)} ({found})")
        return Subplan(df, site, settings, planned, planned.physical)

    # --- running -------------------------------------------------------------------------------------

    def _executed(self, number: str) -> Any:
        """Spark executes a node: run its sub-plan, and answer with a plan of Spark's own that gives its rows."""
        answer = self._context._jvm.java.util.ArrayList()  # type: ignore[union-attr]
        subplan = self._begun[number]
        try:
            found = self._run(subplan)
        except QueryError as error:
            if not _is_sparks(error, subplan.settings):
                return _said(answer, error, subplan)
            _log.info(LEFT_WHILE_RUNNING, error.what)
            found = (self._plan_of_spark(subplan.df), None)
        except WallabyError as error:
            return _said(answer, error, subplan)
        for each in found:
            answer.add(each)
        return answer

    def _run(self, subplan: Subplan) -> tuple[Any, ...]:
        began = time.monotonic()
        job = self._jobs.begin(subplan.df.sparkSession)
        kept = self._runner.keep(
            subplan.site,
            subplan.df,
            subplan.planned,
            subplan.physical,
            subplan.settings,
            job,
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
        _log.info(HAS_RUN, _text(subplan.physical), rows, seconds)
        figures = kept.collected.figures if kept.collected is not None else None
        losses = 0 if figures is None else figures.recoveries
        return plan, query, rows, size_bytes, int(seconds * 1000), losses

    def _reading(self, kept: KeptRows, subplan: Subplan) -> tuple[Any, int, int]:
        """A plan of Spark's own classes that reads rows that stay; how many there are, and how many bytes."""
        places = kept.places()
        session = subplan.df.sparkSession
        # Spark finds the columns of what Python gives by their names, which need not be unique in a plan.
        schema = StructType(
            [
                StructField(f"c{at}", column.dataType, column.nullable)
                for at, column in enumerate(subplan.df.schema.fields)
            ]
        )
        large = str(session.conf.get(_LARGE_TYPES, "false")).lower() == "true"
        reading = KeptReading(
            places.query,
            self._access(),
            self._divided(places, subplan.site.workers),
            places.addresses,
            to_arrow_schema(schema, timezone="UTC", prefers_large_types=large),
            subplan.settings.stall_timeout or subplan.settings.no_workers_timeout,
        )
        count = len(reading.partitions)
        with spark_alone(self._context):
            rows = session.range(0, count, 1, count).mapInArrow(reads(reading), schema)
            plan = rows._jdf.queryExecution().executedPlan()
        return plan, places.rows, places.size_bytes

    def _divided(self, places: KeptPlaces, workers: int) -> tuple[KeptPartition, ...]:
        slots = self._context.defaultParallelism
        if Cluster(self._context).is_local:
            return divided(places.outputs, max(slots - workers, 1), no_more=True)
        return divided(places.outputs, slots)

    def _plan_of_spark(self, df: DataFrame) -> Any:
        with spark_alone(self._context):
            return self._unadapted(df)._jdf.queryExecution().executedPlan()

    def _unadapted(self, df: DataFrame) -> DataFrame:
        """The same query, whose plan Spark does not adapt while it runs."""
        jdf = self._java.unadapted(df._jdf)
        return DataFrame(jdf, SparkSession(self._context, jdf.sparkSession()))

    # --- letting go ----------------------------------------------------------------------------------

    def _release_all(self) -> None:
        """Release the rows that nobody can read any more, until the end."""
        while True:
            try:
                gone = self._rdds.next(WAIT_MS)
            except (Py4JError, OSError) as error:
                _log.debug("Spark does not tell any more what nobody reads: %s", type(error).__name__)
                return
            if gone == "":
                return
            if gone is not None:
                self._let_go(gone)

    def collect(self) -> None:
        """Have the JVM look now for rows that nobody can read any more. They are released soon after."""
        if self._rdds is not None:
            self._rdds.collect()

    def _let_go(self, gone: str) -> None:
        """A query whose rows nobody can read any more, or a sub-plan that nobody can execute any more."""
        with self._lock:
            kept = self._kept.pop(gone, None)
            self._begun.pop(gone, None)
        if kept is not None:
            kept.release()

    @property
    def kept(self) -> Mapping[str, KeptRows]:
        """The rows that stay now, by query."""
        with self._lock:
            return dict(self._kept)


class _Called:
    """A function that the JVM can call."""

    def __init__(self, call: Callable[[Any], Any]) -> None:
        self._call = call

    def apply(self, argument: Any) -> Any:
        """Called by the JVM."""
        return self._call(argument)

    class Java:
        """What py4j makes of it."""

        implements: Final = ["java.util.function.Function"]


def _is_sparks(error: QueryError, settings: Settings) -> bool:
    """Does Spark know better how this sub-plan ends?"""
    doubt = isinstance(error, DoubtfulValueError | HandOverError)
    return doubt or (settings.spark_errors and (error.is_of_data or error.is_of_spark_too))


def _said(answer: Any, error: WallabyError, subplan: Subplan) -> Any:
    _log.info(HAS_FAILED, _text(subplan.physical), error.what)
    answer.add(error.getCondition() or "WALLABY_QUERY")
    answer.add(str(error))
    answer.add(write_error(error))
    return answer


def _text(plan: PhysicalPlan) -> str:
    """A sub-plan in one line, for Spark's own explain: what its stages do."""
    stages = [label for label in plan.labels[:-1] if label]
    return "; ".join(stages)
