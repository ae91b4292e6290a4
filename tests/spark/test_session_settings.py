"""Entries that are set, set again or unset after attach take effect, or it is said that they do not; idle ones too."""

from __future__ import annotations

import logging

import pytest

from wallaby.config.registry import PREFIX
from wallaby.config.settings import Settings, read_settings
from wallaby.errors import ConfigurationError
from wallaby.lineage.tolerance import tolerance_of
from wallaby.spark.idle_settings import idle_settings, warn_of_idle
from wallaby.spark.session_settings import SessionSettings

TIMEOUT, MEMORY = PREFIX + "timeout", PREFIX + "memory"


class Attached:
    """An engine's settings, and what a session says later."""

    def __init__(self, entries: dict[str, str], **keywords: object) -> None:
        self.settings = read_settings(entries, keywords)
        self.session = SessionSettings(entries, read_settings({}, keywords))

    def now(self, entries: dict[str, str], *, is_own: bool = True) -> Settings:
        return self.session.now(self.settings, entries, is_own=is_own)


def test_without_a_change_the_settings_are_those_of_attach() -> None:
    attached = Attached({TIMEOUT: "5s"}, timeout=88)
    assert attached.now({TIMEOUT: "5s"}) is attached.settings
    assert attached.settings.timeout == 88


def test_an_entry_that_is_unset_counts_no_longer() -> None:
    attached = Attached({TIMEOUT: "5s"})
    assert attached.settings.timeout == 5
    assert attached.now({}).timeout == 0
    assert attached.now({TIMEOUT: "7s"}).timeout == 7
    assert attached.now({TIMEOUT: "5s"}).timeout == 5


def test_a_keyword_counts_again_when_what_was_set_later_is_unset() -> None:
    attached = Attached({}, timeout=88)
    assert attached.now({TIMEOUT: "5s"}).timeout == 5
    assert attached.now({}).timeout == 88
    assert Attached({TIMEOUT: "5s"}, timeout=88).now({}).timeout == 88


def test_what_is_set_later_comes_before_a_keyword_even_if_it_is_what_it_was_at_first() -> None:
    attached = Attached({TIMEOUT: "5s"}, timeout=88)
    assert attached.now({TIMEOUT: "99s"}).timeout == 99
    assert attached.now({TIMEOUT: "5s"}).timeout == 5


def test_an_entry_that_was_refused_leaves_no_trace() -> None:
    attached = Attached({})
    with pytest.raises(ConfigurationError):
        attached.now({PREFIX + "timout": "5s"})
    assert attached.now({}) is attached.settings


@pytest.mark.parametrize(
    ("later", "said"),
    [({MEMORY: "3g"}, f"{MEMORY} = 3g has no effect"), ({}, f"Unsetting {MEMORY} has no effect")],
)
def test_a_change_that_comes_too_late_is_told_once(
    later: dict[str, str], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    attached = Attached({MEMORY: "2g"})
    with caplog.at_level(logging.WARNING, "wallaby"):
        assert attached.now(later).memory == attached.now(later).memory == 2 << 30
    (record,) = caplog.records
    assert record.getMessage().startswith(said)


def test_another_session_need_not_have_the_entries_of_the_first(caplog: pytest.LogCaptureFixture) -> None:
    attached = Attached({MEMORY: "2g"})
    assert attached.now({}, is_own=False).memory == 2 << 30
    assert caplog.records == []


@pytest.mark.parametrize(
    ("entries", "idle"),
    [
        ({}, []),
        ({"gcs.password": "x", "gcs.tlsCa": "/ca"}, ["gcs.password", "gcs.tlsCa"]),
        ({"gcs.password": "x", "gcs.url": "redis://r"}, []),
        (
            {"faultTolerance.store": "file:///s", "faultTolerance.checkpoint": "9s"},
            ["faultTolerance.store", "faultTolerance.checkpoint"],
        ),
        (
            {
                "faultTolerance.store": "file:///s",
                "faultTolerance.checkpoint": "9s",
                "faultTolerance.policy": "spool",
            },
            ["faultTolerance.checkpoint"],
        ),
        (
            {
                "faultTolerance.store": "file:///s",
                "faultTolerance.checkpoint": "9s",
                "faultTolerance.policy": "checkpoint+lineage",
            },
            [],
        ),
        ({"chaos.faults": "w2:commit:3:kill"}, ["chaos.faults"]),
    ],
)
def test_settings_without_an_effect_are_named_with_the_reason(
    entries: dict[str, str], idle: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    settings = read_settings({PREFIX + key: text for key, text in entries.items()}, {})
    tolerance = tolerance_of(settings.fault_tolerance_policy)
    assert [key for key, _ in idle_settings(settings, tolerance)] == [PREFIX + key for key in idle]
    with caplog.at_level(logging.WARNING, "wallaby"):
        warn_of_idle(settings, tolerance)
    assert [" has no effect, because spark.wallaby." in line for line in caplog.messages] == [True] * len(
        idle
    )
