"""Whatever goes wrong while a plan is examined, Spark plans the query."""

from __future__ import annotations

import errno
import logging
from typing import Any, cast

import pytest

from wallaby.above.subplans import Subplans
from wallaby.errors import ConfigurationError, QueryError


class Broken(Subplans):
    """Fails at every plan."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def _chosen(self, plan: Any, facts: Any) -> list[tuple[str, str, str]]:
        del plan, facts
        raise self._error


@pytest.mark.parametrize(
    "error",
    [
        QueryError("it cannot be read"),
        OSError(errno.EMFILE, "Too many open files"),
        MemoryError(),
        AssertionError("a bug"),
        ConfigurationError("spark.wallaby.below = 'maybe' is not valid."),
    ],
)
def test_spark_plans_what_cannot_be_examined(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="wallaby"):
        assert Broken(error)._offered(cast(Any, None), "-\0free") is None
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    assert "was left to Spark" in record.message
