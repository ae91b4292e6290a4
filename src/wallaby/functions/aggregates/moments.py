"""Variance, skewness and kurtosis of lists, from differences to the mean, because sums of powers lose digits."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wallaby.functions.arrow_function import ArrowFunction
from wallaby.relations.types import DOUBLE, DataType, Kind

SQUARES: Final = "wallaby_squared_differences"
SKEWNESS: Final = "wallaby_skewness"
KURTOSIS: Final = "wallaby_kurtosis"
_LIST: Final = DataType(Kind.ARRAY, children=(DOUBLE,))
_Numbers = npt.NDArray[np.float64]


def _moments(lists: pa.ChunkedArray, highest: int) -> tuple[_Numbers, _Numbers, _Numbers]:
    """For each list: its length, and the sums of the second and the highest powers of the differences.

    Numbers are taken relative to the first one, so that for equal numbers the mean is exact and the differences are 0.
    """
    whole = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
    values = whole.flatten().to_numpy(zero_copy_only=False)
    counts = np.nan_to_num(whole.value_lengths().to_numpy(zero_copy_only=False)).astype(np.int64)
    owners = np.repeat(np.arange(len(counts)), counts)

    def summed(numbers: _Numbers) -> _Numbers:
        return np.bincount(owners, numbers, len(counts)).astype(np.float64)

    size = counts.astype(np.float64)
    begins = np.cumsum(counts) - counts
    with np.errstate(all="ignore"):
        values = values - values[begins[owners]]
        means = summed(values) / size
        differences = values - means[owners]
        return size, summed(differences**2), summed(differences**highest)


def _known(found: _Numbers, seconds: _Numbers, sizes: _Numbers) -> pa.Array:
    """NULL for an empty list, and for numbers that are all equal."""
    return pa.array(found, pa.float64(), mask=(sizes == 0) | (seconds == 0))


def _squares(lists: pa.ChunkedArray) -> pa.Array:
    sizes, seconds, _ = _moments(lists, 2)
    return pa.array(seconds, pa.float64(), mask=sizes == 0)


def _skewness(lists: pa.ChunkedArray) -> pa.Array:
    sizes, seconds, thirds = _moments(lists, 3)
    with np.errstate(all="ignore"):
        return _known(np.sqrt(sizes) * thirds / np.sqrt(seconds**3), seconds, sizes)


def _kurtosis(lists: pa.ChunkedArray) -> pa.Array:
    sizes, seconds, fourths = _moments(lists, 4)
    with np.errstate(all="ignore"):
        return _known(sizes * fourths / (seconds * seconds) - 3, seconds, sizes)


FUNCTIONS: Final[tuple[ArrowFunction, ...]] = (
    ArrowFunction(SQUARES, (_LIST,), DOUBLE, _squares),
    ArrowFunction(SKEWNESS, (_LIST,), DOUBLE, _skewness),
    ArrowFunction(KURTOSIS, (_LIST,), DOUBLE, _kurtosis),
)
