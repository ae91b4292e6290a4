"""The Spark versions that Wallaby runs on, and what differs between them in Python.

What differs in the driver's JVM is in `java/SparkVersions.java`. Whoever adds or drops a version looks in these
two files.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import pyspark

from wallaby.errors import UnsupportedSparkError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

#: The versions that `make versions` tests, oldest first.
SUPPORTED: Final = ((4, 1), (4, 2), (4, 3))
#: The first version in which a task can request a part of a CPU.
_FRACTIONAL_CPUS: Final = (4, 3)
#: The first version in which the types of Arrow that stand for Spark's name a time zone.
_ARROW_TIME_ZONE: Final = (4, 2)
_NUMBERS: Final = re.compile(r"(\d+)\.(\d+)")


def supported_text() -> str:
    """The supported versions, for messages."""
    *others, last = (f"{major}.{minor}" for major, minor in SUPPORTED)
    return f"{', '.join(others)} and {last}"


def check_version(version: str = pyspark.__version__, what: str = "PySpark") -> None:
    """Refuse a version that Wallaby does not run on.

    Raises:
        UnsupportedSparkError: the message lists the versions that it does run on.
    """
    if _parsed(version) not in SUPPORTED:
        raise UnsupportedSparkError(
            f"Wallaby runs on Spark {supported_text()}; this is {what} {version}.",
            fix=f'Install one of them: pip install "pyspark=={SUPPORTED[-1][0]}.{SUPPORTED[-1][1]}.*".',
            found=version,
            supported=tuple(f"{major}.{minor}" for major, minor in SUPPORTED),
        )


def has_fractional_cpus() -> bool:
    """Can a task request less than one CPU? Where it cannot, a TaskManager takes a slot."""
    return _parsed(pyspark.__version__) >= _FRACTIONAL_CPUS


def arrow_schema(schema: StructType, *, large: bool = False) -> pa.Schema:
    """The types of Arrow in which Spark exchanges rows with Python; with `large`, long strings have their own."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - PySpark before 4 has no such arguments

    if _parsed(pyspark.__version__) >= _ARROW_TIME_ZONE:
        return to_arrow_schema(schema, timezone="UTC", prefers_large_types=large)
    ask: Any = to_arrow_schema
    return ask(schema, timestamp_utc=True, prefers_large_types=large)


def _parsed(version: str) -> tuple[int, int]:
    found = _NUMBERS.match(version)
    return (int(found[1]), int(found[2])) if found else (0, 0)
