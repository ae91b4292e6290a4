"""The work that `wallaby differential` distributes to processes: groups of entries or random queries."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

import wallaby
from wallaby.commands.session import engine_session
from wallaby.engine import Engine
from wallaby.faults.orders import FaultOrders
from wallaby_lab import tpch
from wallaby_lab.differential import campaign
from wallaby_lab.differential.arena import QUICK, QUICK_JVM, ComparisonArena
from wallaby_lab.differential.campaign import CampaignResult
from wallaby_lab.differential.crew import Say
from wallaby_lab.differential.entries import EntrySuite, EntryTally
from wallaby_lab.differential.generated.functions import ExampleFunction, scalar_functions
from wallaby_lab.differential.generated.kept import kept_functions
from wallaby_lab.differential.generated.tables import register, write_tables
from wallaby_lab.differential.losses import Losses
from wallaby_lab.differential.tops.arena import TopArena
from wallaby_lab.differential.tops.blocks import TpchBlock
from wallaby_lab.differential.tops.campaign import TopCampaign, TopTally

#: A query of few rows that takes longer hangs, which counts as a difference.
HANGS_SECONDS = 300


@dataclass(frozen=True, slots=True)
class EntryWork:
    """Groups of entries."""

    seed: int
    directory: Path

    @contextmanager
    def begin(self, say: Say) -> Iterator[Callable[[Sequence[str]], dict[str, EntryTally]]]:
        """A session, and the tables of entries."""
        with _session({}) as (spark, engine):
            _register(spark, _own(self.directory), self.seed)
            yield EntrySuite(spark, engine, self.seed, say).run


@dataclass(frozen=True, slots=True)
class RandomQueryWork:
    """Random queries, by their seeds; with losses, a worker is killed in each."""

    directory: Path
    #: Where functions are kept.
    keep: Path
    losses: bool

    @contextmanager
    def begin(self, say: Say) -> Iterator[Callable[[Sequence[int]], CampaignResult]]:
        """A session, and the functions that queries are made of."""
        own = _own(self.directory)
        book = own / "orders"
        settings: dict[str, object] = {"leaf_minimum": 0}
        if self.losses:
            settings |= {"chaos_enabled": True, "chaos_directory": str(book)}

        def functions_found() -> list[ExampleFunction]:
            _register(spark, own, 0)
            return scalar_functions(spark, engine)

        with _session({}, **settings) as (spark, engine):
            functions = kept_functions(self.keep, functions_found)
            say(f"expressions are made of {len(functions)} functions")
            yield partial(
                campaign.run,
                ComparisonArena(spark, engine, own / "random"),
                functions,
                say=say,
                losses=Losses(FaultOrders(book)) if self.losses else None,
            )


@dataclass(frozen=True, slots=True)
class RandomTopWork:
    """Random queries with tops, by their seeds."""

    directory: Path
    #: Where functions are kept.
    keep: Path

    @contextmanager
    def begin(self, say: Say) -> Iterator[Callable[[Sequence[int]], TopTally]]:
        """An enabled session, and the functions that queries are made of."""
        own = _own(self.directory)

        def functions_found() -> list[ExampleFunction]:
            _register(spark, own, 0)
            return scalar_functions(spark, engine)

        with _session(_own_places(own), leaf_minimum=0) as (spark, engine):
            functions = kept_functions(self.keep, functions_found)
            with _top_campaign(spark, engine, own, say) as tops:
                yield partial(tops.run_random, functions)


@dataclass(frozen=True, slots=True)
class TpchTopWork:
    """Blocks of TPC-H queries with tops."""

    directory: Path
    scale: float

    @contextmanager
    def begin(self, say: Say) -> Iterator[Callable[[TpchBlock], TopTally]]:
        """An enabled session, and the tables."""
        own = _own(self.directory)
        with _session(_own_places(own)) as (spark, engine):
            tpch.register(spark, tpch.generate(own / "tpch", self.scale))
            with _top_campaign(spark, engine, own, say) as tops:
                yield tops.run_tpch


@contextmanager
def _top_campaign(spark: SparkSession, engine: Engine, own: Path, say: Say) -> Iterator[TopCampaign]:
    # PySpark says of toJSON and of functions with annotations what may change in a later version.
    warnings.filterwarnings("ignore", category=UserWarning, module="pyspark")
    spark.sparkContext.setCheckpointDir(str(own / "checkpoints"))
    tables = ComparisonArena(spark, engine, own / "random")
    wallaby.enable(spark)
    try:
        yield TopCampaign(TopArena(spark, engine, tables, own / "answer"), engine, own / "local", say)
    finally:
        wallaby.disable(spark)


def _own_places(own: Path) -> dict[str, str]:
    """Settings of a session whose tables and scratch files are in a directory of its own."""
    return {"spark.sql.warehouse.dir": str(own / "warehouse"), "spark.local.dir": str(own / "local")}


def _own(directory: Path) -> Path:
    return directory / str(os.getpid())


def _register(spark: SparkSession, directory: Path, seed: int) -> None:
    """The tables of entries."""
    write_tables(directory / "entries", seed)
    register(spark, directory / "entries")


@contextmanager
def _session(places: Mapping[str, str], **settings: object) -> Iterator[tuple[SparkSession, Engine]]:
    """A session and an engine for small queries."""
    configuration = {**QUICK, **QUICK_JVM, **places}
    # The engine's own errors are needed: Spark's would be compared with themselves.
    own = {"threads": 1, "progress_enabled": False, "timeout": HANGS_SECONDS, "spark_errors": False}
    settings = {**own, **settings}
    with engine_session("local[3]", 2, configuration, **settings) as (spark, engine):
        yield spark, engine
