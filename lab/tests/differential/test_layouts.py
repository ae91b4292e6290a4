"""An error that Spark raises in some way of running a query is Spark's; the settings are as they were afterwards."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from wallaby.errors import ArithmeticOverflowError, NumericOutOfRangeError
from wallaby_lab.differential.layouts import configured, spark_raises
from wallaby_lab.differential.outcome import QueryOutcome


class Conf(dict[str, str]):
    def set(self, key: str, value: str) -> None:
        self[key] = value

    def unset(self, key: str) -> None:
        del self[key]


class Fake:
    """A session whose error depends on whether code is generated."""

    def __init__(self) -> None:
        self.conf = Conf({"spark.sql.codegen.wholeStage": "false"})

    def toArrow(self) -> pa.Table:  # noqa: N802 - the name is PySpark's
        compiled = self.conf["spark.sql.codegen.wholeStage"] == "true"
        raise (ArithmeticOverflowError if compiled else NumericOutOfRangeError)("The sum is too large.")


def test_what_spark_raises_in_another_way_is_sparks() -> None:
    fake: Any = Fake()
    assert spark_raises(fake, fake.toArrow, QueryOutcome(None, "ARITHMETIC_OVERFLOW"))
    assert not spark_raises(fake, fake.toArrow, QueryOutcome(None, "DIVIDE_BY_ZERO"))
    assert fake.conf == {"spark.sql.codegen.wholeStage": "false"}


def test_settings_are_those_of_before_also_after_an_error() -> None:
    fake: Any = Fake()
    try:
        with configured(fake, {"spark.sql.codegen.wholeStage": "true", "new": "1"}):
            assert fake.conf["new"] == "1"
            raise KeyError
    except KeyError:
        pass
    assert fake.conf == {"spark.sql.codegen.wholeStage": "false"}
