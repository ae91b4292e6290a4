"""Functions that are computed for plain values only; for any other value, Spark runs the query.

`plan/doubt.py` explains what happens to such a query.
"""

from __future__ import annotations

from typing import Final, NoReturn

from wallaby.functions.arrow_function import ValueFault

#: The condition of the error that leaves a query to Spark.
DOUBTFUL: Final = "WALLABY_DOUBTFUL_VALUE"
#: The guard of such functions.
DOUBT: Final = "with any other value Spark runs the query"


def doubt(function: str) -> NoReturn:
    """Leave the query to Spark."""
    raise ValueFault(DOUBTFUL, f"Only Spark can compute {function} for one of its values.")
