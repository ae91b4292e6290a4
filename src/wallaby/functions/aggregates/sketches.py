"""Spark's sketch for approximate counts of distinct values: HyperLogLog++.

A value's hash has a place and a rank in the sketch, and only the highest rank of each place counts; so a sketch is a
set of places with ranks, independent of the order of rows. The published tables that correct an estimate come with the
query, from Spark's driver.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa

from wallaby.functions.arrow_function import ArrowFunction, per_value
from wallaby.relations.types import INTEGER, LONG, STRING, array

_RANK_BITS: Final = 6
_NEIGHBOURS: Final = 6
_ALPHAS: Final = {4: 0.673, 5: 0.697, 6: 0.709}


def place(hashes: pa.ChunkedArray, precisions: pa.ChunkedArray) -> pa.Array:
    """Place and rank of hashes in one number: the first bits, and the number of zeros that follow them."""
    missing = hashes.is_null().to_numpy()
    values = hashes.fill_null(0).to_numpy().astype(np.int64).view(np.uint64)
    if not len(values):
        return pa.array([], pa.int32())
    bits = np.uint64(precisions[0].as_py())
    rest = (values << bits) | (np.uint64(1) << (bits - np.uint64(1)))
    zeros = np.zeros(len(values), np.uint64)
    for step in (32, 16, 8, 4, 2, 1):
        empty = (rest >> np.uint64(64 - step)) == 0
        zeros += np.where(empty, np.uint64(step), np.uint64(0))
        rest = np.where(empty, rest << np.uint64(step), rest)
    found = ((values >> (np.uint64(64) - bits)) << np.uint64(_RANK_BITS)) | (zeros + np.uint64(1))
    return pa.array(found.astype(np.int32), mask=missing if missing.any() else None)


@dataclass(frozen=True, slots=True)
class EstimatorConstants:
    """The number of places, the largest estimate that is made by counting empty places, and the corrections."""

    bits: int
    threshold: float
    estimates: tuple[float, ...]
    biases: tuple[float, ...]


@lru_cache(maxsize=64)
def read_constants(text: str) -> EstimatorConstants:
    """Parse the tables as Spark's driver writes them: four parts, two of which are lists."""
    bits, threshold, estimates, biases = text.split(";")
    return EstimatorConstants(
        int(bits),
        float(threshold),
        tuple(map(float, estimates.split(","))),
        tuple(map(float, biases.split(","))),
    )


def estimate(places: Sequence[int], text: str) -> int:
    """Estimate the number of distinct values of a sketch."""
    constants = read_constants(text)
    count = 1 << constants.bits
    ranks = [0] * count
    for each in places:
        at, rank = each >> _RANK_BITS, each & ((1 << _RANK_BITS) - 1)
        ranks[at] = max(ranks[at], rank)
    inverse = 0.0
    for rank in ranks:
        inverse += 1.0 / (1 << rank)
    alpha = _ALPHAS.get(constants.bits) or 0.7213 / (1.0 + 1.079 / count)
    raw = alpha * count * count / inverse
    empty = ranks.count(0)
    if empty:
        counted = count * math.log(count / empty)
        if counted <= constants.threshold or raw <= 2.5 * count:
            return _rounded(counted)
    return _rounded(raw - _bias(raw, constants) if raw < 5.0 * count else raw)


def _bias(raw: float, constants: EstimatorConstants) -> float:
    """The mean error of the nearest known estimates."""
    known = constants.estimates
    low = max(bisect_left(known, raw) - _NEIGHBOURS + 1, 0)
    high = min(low + _NEIGHBOURS, len(known))
    while high < len(known) and (raw - known[high]) ** 2 < (raw - known[low]) ** 2:
        low, high = low + 1, high + 1
    total = 0.0
    for bias in constants.biases[low:high]:
        total += bias
    return total / (high - low)


def _rounded(number: float) -> int:
    whole = math.floor(number)
    return whole + 1 if number - whole >= 0.5 else whole


FUNCTIONS: Final = (
    ArrowFunction("wallaby_sketch_place", (LONG, INTEGER), INTEGER, place),
    per_value("wallaby_sketch_estimate", (array(INTEGER), STRING), LONG, estimate),
)
