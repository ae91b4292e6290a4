"""Whose tasks make the process grow: a long innocent task is not charged for short greedy ones, nor the reverse."""

from __future__ import annotations

from wallaby.worker.memory.growth import ProcessGrowth

MIB = 1 << 20


class Query:
    """Something that owns tasks."""


class Story:
    """A process whose memory a test sets, and two queries."""

    def __init__(self) -> None:
        self.growth = ProcessGrowth()
        self.a, self.b = Query(), Query()
        self.now, self.resident = 0.0, 100 * MIB

    def begins(self, query: Query) -> None:
        self.growth.begins(query, self.resident, self.now)

    def ends(self, query: Query) -> None:
        self.growth.ends(query, self.resident, self.now)

    def goes_on(self, seconds: float, mib: float = 0) -> None:
        self.now += seconds
        self.resident += int(mib * MIB)

    def grown(self, query: Query) -> int:
        return round(self.growth.of(query, self.resident, self.now) / MIB)


def test_what_the_process_grows_by_while_one_query_runs_is_that_querys() -> None:
    story = Story()
    story.goes_on(1, 50)
    story.begins(story.a)
    story.goes_on(1, 200)
    assert (story.grown(story.a), story.grown(story.b)) == (200, 0)
    story.ends(story.a)
    story.goes_on(1, 50)
    story.begins(story.b)
    story.goes_on(1, 30)
    assert (story.grown(story.a), story.grown(story.b)) == (200, 30)


def test_a_long_innocent_task_is_not_charged_for_short_greedy_ones() -> None:
    """The process grows by a gigabyte since the long task began, and by little since the last short one did."""
    story = Story()
    story.begins(story.a)
    for _ in range(100):
        story.goes_on(0.002)
        story.begins(story.b)
        story.goes_on(0.05, 10)
        story.ends(story.b)
    assert story.grown(story.b) > 800
    assert story.grown(story.a) < 200


def test_a_long_greedy_task_is_not_excused_by_short_innocent_ones() -> None:
    story = Story()
    story.begins(story.a)
    for at in range(100):
        story.goes_on(0.002, 0.5 if at >= 20 else 0)  # it begins to grow after a while
        story.begins(story.b)
        story.goes_on(0.05, 10 if at >= 20 else 0)
        story.ends(story.b)
    assert story.grown(story.a) > 2 * story.grown(story.b)


def test_who_is_not_known_shares_by_tasks() -> None:
    story = Story()
    story.begins(story.a)
    story.begins(story.b)
    story.begins(story.b)
    story.goes_on(1, 300)
    assert (story.grown(story.a), story.grown(story.b)) == (100, 200)


def test_what_is_given_back_is_taken_off_in_proportion() -> None:
    story = Story()
    story.begins(story.a)
    story.goes_on(1, 100)
    story.ends(story.a)
    story.begins(story.b)
    story.goes_on(1, 300)
    assert (story.grown(story.a), story.grown(story.b)) == (100, 300)
    story.goes_on(1, -200)
    assert (story.grown(story.a), story.grown(story.b)) == (50, 150)
    story.goes_on(1, -900)
    assert (story.grown(story.a), story.grown(story.b)) == (0, 0)


def test_a_query_that_has_ended_is_forgotten_even_if_a_task_ends_later() -> None:
    story = Story()
    story.begins(story.a)
    story.goes_on(1, 100)
    story.growth.forget(story.a)
    story.ends(story.a)
    assert story.grown(story.a) == 0
