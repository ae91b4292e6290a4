"""Settings are read from text, with errors that name the key and what to do."""

from __future__ import annotations

import threading

import pytest

from wallaby.config.registry import PREFIX, REPLACED, SETTINGS
from wallaby.config.settings import read_settings
from wallaby.errors import ConfigurationError


@pytest.mark.parametrize("old", REPLACED)
def test_a_former_key_is_refused_with_what_to_set_instead(old: str) -> None:
    assert old not in {setting.key for setting in SETTINGS}
    with pytest.raises(ConfigurationError, match=rf"{old}\. Set {PREFIX}faultTolerance\.policy=") as error:
        read_settings({PREFIX + old: "false"}, {})
    assert error.value.fields["key"] == PREFIX + old


@pytest.mark.parametrize("old", ["fault_tolerance_enabled", "execution_mode"])
def test_a_former_keyword_is_refused_too(old: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"{old}\. Set {PREFIX}faultTolerance\.policy="):
        read_settings({}, {old: "false"})


def test_what_only_sessions_have_is_refused_as_an_argument() -> None:
    with pytest.raises(ConfigurationError, match=r"every query reads spark\.wallaby\.enabled") as refused:
        read_settings({}, {"enabled": False})
    assert 'spark.conf.set("spark.wallaby.enabled", "false")' in str(refused.value)


def test_a_key_with_a_typing_error_is_answered_with_its_neighbour() -> None:
    with pytest.raises(ConfigurationError, match=r"Did you mean spark\.wallaby\.threads\?"):
        read_settings({PREFIX + "thread": "1"}, {})


def test_texts_are_read_with_their_units() -> None:
    found = read_settings(
        {PREFIX + "memory": "2g", PREFIX + "lease": "500ms"}, {"timeout": "2min", "window": 7}
    )
    assert (found.memory, found.lease, found.timeout, found.window) == (2 << 30, 0.5, 120.0, 7)


def test_a_key_that_is_like_no_other_is_answered_with_where_they_are_listed() -> None:
    with pytest.raises(ConfigurationError, match=r"See docs/configuration\.md"):
        read_settings({PREFIX + "nonsense": "1"}, {})


@pytest.mark.parametrize(
    ("key", "text", "bounds"),
    [
        ("memory.allowance", "1m", "between 256m and 64t"),
        ("memory", "100t", "between 0 and 64t"),
        ("window", "99999999t", "between 1 and 64t"),
        ("timeout", "99999999h", "between 0s and 31622400s"),
        ("lease", "0.1", "between 0.2s and 600s"),
        ("channels", "-1", "between 0 and 1024"),
    ],
)
def test_a_value_out_of_range_is_answered_with_the_range_as_one_would_write_it(
    key: str, text: str, bounds: str
) -> None:
    with pytest.raises(ConfigurationError, match=rf"Set it to {bounds}\."):
        read_settings({PREFIX + key: text}, {})


def test_every_number_has_bounds_that_no_clock_and_no_integer_exceeds() -> None:
    numbers = [setting for setting in SETTINGS if setting.kind in ("number", "bytes", "seconds")]
    assert [setting.key for setting in numbers if setting.least is None or setting.most is None] == []
    times = [setting.most for setting in numbers if setting.kind == "seconds"]
    assert max(filter(None, times)) < threading.TIMEOUT_MAX
    assert max(filter(None, (setting.most for setting in numbers))) < 1 << 63


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("threads", "1_0"),
        ("threads", "\N{ARABIC-INDIC DIGIT THREE}"),
        ("threads", "1.5"),
        ("memory", "\N{ARABIC-INDIC DIGIT THREE}g"),
        ("memory", "1.5g"),
        ("memory", ""),
        ("timeout", "\N{ARABIC-INDIC DIGIT THREE}s"),
        ("timeout", "inf"),
        ("timeout", "-5s"),
        ("enabled", "yes"),
    ],
)
def test_a_text_that_spark_would_not_read_is_refused(key: str, text: str) -> None:
    with pytest.raises(ConfigurationError, match="is not valid"):
        read_settings({PREFIX + key: text}, {})
