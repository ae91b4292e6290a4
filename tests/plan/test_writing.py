"""Which channels write the rows of a query."""

from __future__ import annotations

from tests.plan.builders import statistics_of, tpch

from wallaby.plan.physical import PhysicalPlan, WriteFragment
from wallaby.plan.planner import plan
from wallaby.plan.settings import PlanSettings
from wallaby.relations.target import TimestampForm, WriteTarget

T = tpch(1)
LINE = T["lineitem"]
MIB = 1 << 20


def planned(file_bytes: int, *, gathered: bool, partitions: tuple[str, ...] = ()) -> PhysicalPlan:
    target = WriteTarget(
        folder="/made",
        job="j",
        suffix=".parquet",
        codec="none",
        timestamps=TimestampForm.MICROS,
        arrow_schema="",
        spark_schema="",
        spark_version="",
        partitions=partitions,
        file_bytes=file_bytes,
        gathered=gathered,
    )
    return plan(LINE.scan, statistics_of(T), PlanSettings(channels=8), target)


def writing_channels(made: PhysicalPlan) -> list[int]:
    stages = zip(made.fragments, made.graph.stages, strict=True)
    return [stage.channels for fragment, stage in stages if isinstance(fragment, WriteFragment)]


def test_every_channel_writes_unless_a_size_is_given() -> None:
    assert writing_channels(planned(1 << 40, gathered=False)) == [8]


def test_so_many_channels_write_as_files_are_filled() -> None:
    assert writing_channels(planned(1 << 40, gathered=True)) == [1]
    (some,) = writing_channels(planned(512 * MIB, gathered=True))
    assert 1 < some < 8
    assert writing_channels(planned(MIB, gathered=True)) == [8]


def test_partitions_are_spread_over_all_channels() -> None:
    assert writing_channels(planned(1 << 40, gathered=True, partitions=("l_shipmode",))) == [8]
