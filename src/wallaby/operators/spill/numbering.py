"""Number rows that come in order: which partition and which group of peers each belongs to, and where it is in them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wallaby.statements.window_plan import RowPlace

_Numbers = npt.NDArray[np.int64]


class Numbering:
    """Numbers one portion after the other, and knows where the last one ended."""

    def __init__(self) -> None:
        #: The keys of the last row.
        self._keys: tuple[pa.Scalar, ...] = ()
        #: Of the last row: its number, its partition's, its peers', and those of the rows with which both begin.
        self._row = self._partition = self._peers = -1
        self._partition_row = self._peers_row = self._partition_peers = 0

    def numbers(self, keys: pa.Table) -> Mapping[RowPlace, _Numbers]:
        """The numbers of the next rows, at least one; `keys` has a column for partitions and one for peers."""
        columns = [
            keys.column(place.value).combine_chunks() for place in (RowPlace.PARTITION, RowPlace.PEERS)
        ]
        begins, peers_begin = (self._changes(column, n) for n, column in enumerate(columns))
        peers_begin |= begins
        rows = self._row + 1 + np.arange(len(begins))
        partition = self._partition + np.cumsum(begins)
        peers = self._peers + np.cumsum(peers_begin)
        partition_row = _latest(rows, begins, self._partition_row)
        peers_row = _latest(rows, peers_begin, self._peers_row)
        partition_peers = _latest(peers, begins, self._partition_peers)
        self._keys = tuple(column[-1] for column in columns)
        self._row, self._partition, self._peers = int(rows[-1]), int(partition[-1]), int(peers[-1])
        self._partition_row, self._peers_row = int(partition_row[-1]), int(peers_row[-1])
        self._partition_peers = int(partition_peers[-1])
        return {
            RowPlace.ROW: rows,
            RowPlace.PARTITION: partition,
            RowPlace.PLACE: rows - partition_row,
            RowPlace.PEERS: peers,
            RowPlace.PEERS_BEGIN: peers_row - partition_row,
            RowPlace.PEERS_NUMBER: peers - partition_peers,
        }

    def _changes(self, keys: pa.Array, place: int) -> npt.NDArray[np.bool_]:
        """For each row: is its key another one than that of the row before it?"""
        first = not self._keys or self._keys[place] != keys[0]
        return np.concatenate(([first], pc.not_equal(keys[1:], keys[:-1]).to_numpy(zero_copy_only=False)))


def _latest(numbers: _Numbers, marked: npt.NDArray[np.bool_], before: int) -> _Numbers:
    """For each row, the number of the last marked row up to it; numbers grow."""
    found: _Numbers = np.maximum.accumulate(np.where(marked, numbers, before))
    return found
