"""Names print the same everywhere, sort by their parts, and lead from a task to its channel."""

from __future__ import annotations

from wallaby.lineage.names import ChannelName, Edge, TaskName, Upstream


def test_every_name_prints_in_its_one_form() -> None:
    assert f"{TaskName(2, 1, 7)}" == "s2.c1.t7"
    assert f"{ChannelName(2, 1)}" == "s2.c1"
    assert f"{Edge(3, 0, 12)}" == "l3:0>12"
    assert f"{Upstream(3, 12)}" == "l3.c12"


def test_a_task_knows_its_channel() -> None:
    assert TaskName(2, 1, 7).of == ChannelName(2, 1)
    assert TaskName(*ChannelName(2, 1), 7) == TaskName(2, 1, 7)


def test_tasks_sort_by_number_and_not_by_text() -> None:
    tasks = [TaskName(10, 0, 0), TaskName(2, 0, 10), TaskName(2, 0, 9)]
    assert sorted(tasks) == [TaskName(2, 0, 9), TaskName(2, 0, 10), TaskName(10, 0, 0)]
