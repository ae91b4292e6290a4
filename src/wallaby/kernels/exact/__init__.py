"""Exact functions that DuckDB lacks, given to it as Python functions over Arrow arrays; a file per family."""

from __future__ import annotations

from typing import Final

import duckdb

from wallaby.kernels.exact import (
    decimals,
    floating_text,
    hashes,
    nested,
    numbers,
    parsing,
    patterns,
    text,
    times,
)
from wallaby.kernels.exact.arrow_function import ArrowFunction

ALL: Final[tuple[ArrowFunction, ...]] = (
    *decimals.FUNCTIONS,
    *floating_text.FUNCTIONS,
    *hashes.FUNCTIONS,
    *nested.FUNCTIONS,
    *numbers.FUNCTIONS,
    *parsing.FUNCTIONS,
    *patterns.FUNCTIONS,
    *text.FUNCTIONS,
    *times.FUNCTIONS,
)


def register(connection: duckdb.DuckDBPyConnection) -> None:
    """Give a connection all of them."""
    for function in ALL:
        function.register(connection)
