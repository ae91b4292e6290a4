"""A stripe of an ORC file: its decoded size, and a copy of it as a separate file.

Files are often compressed a hundredfold, and text may be dictionary-encoded, so the size of a stripe in its file says
little. Row indexes give the total length of the texts of every ten thousand rows. Without an index, a text is assumed
to be as long as its dictionary.

Arrow decodes a stripe at once, or a whole file batch by batch. So a stripe that is too large is first copied unchanged
to a separate file; only the footer is new.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO, Final

import pyarrow as pa

from wallaby.tables.formats.orc_sections import (
    HEADER_BYTES,
    NONE,
    Message,
    chunk_header,
    decompressed,
    message,
    messages,
    number,
    numbers,
    signed,
    uncompressed,
    written,
)

_MAGIC: Final = b"ORC"
_TAIL_BYTES: Final = 1 << 14
_COPIED_BYTES: Final = 1 << 20
#: The bytes of a stream that the library reads at a time.
_READ_BYTES: Final = 1 << 17
#: Numbers and lengths are 64 bits wide in the library's own batches, which exist beside Arrow's.
_OWN_BYTES: Final = 8
_TEXT_BYTES: Final = 24
#: Fields of a file's postscript and footer.
_FOOTER_LENGTH, _COMPRESSION, _BLOCK, _METADATA_LENGTH, _STATISTICS_LENGTH = 1, 2, 3, 5, 7
_CONTENT_LENGTH, _STRIPES, _TYPES, _ROWS, _STATISTICS, _STRIDE = 2, 3, 4, 6, 7, 8
#: Fields of a stripe's description in the footer, and of the stripe's own footer.
_OFFSET, _INDEX_LENGTH, _DATA_LENGTH, _STRIPE_FOOTER_LENGTH, _STRIPE_ROWS = 1, 2, 3, 4, 5
_STREAMS, _ENCODINGS = 1, 2
#: Kinds of streams, and the encodings of columns that have a dictionary.
_DATA, _DICTIONARY, _ROW_INDEX = 1, 3, 6
_READ_STREAMS: Final = range(6)
_WITH_DICTIONARY: Final = frozenset({1, 3})
#: Fields of statistics: those of texts and of bytes, and the sum of lengths inside them.
_SUMS: Final = ((4, 3), (8, 1))
_BLOCK_BYTES: Final = 1 << 18
Changes = dict[int, int | bytes]


@dataclass(frozen=True, slots=True)
class ColumnSizes:
    """Sizes of a column of a stripe: of all rows, of a row where rows are largest, and of the buffers of a reader."""

    decoded_bytes: int
    row_bytes: float
    held_bytes: int


@dataclass(frozen=True, slots=True)
class _Stream:
    kind: int
    column: int
    begin: int
    length: int


class StripedFile:
    """An ORC file that is open for reading."""

    def __init__(self, source: BinaryIO | pa.NativeFile, size_bytes: int) -> None:
        self._source = source
        self._read_tail(size_bytes)

    def _read_tail(self, size_bytes: int) -> None:
        tail = self._bytes(max(size_bytes - _TAIL_BYTES, 0), min(size_bytes, _TAIL_BYTES))
        if not tail or len(tail) <= tail[-1]:
            raise pa.ArrowInvalid("a file ends before its postscript")
        self._postscript = message(tail[-1 - tail[-1] : -1])
        self._compression = number(self._postscript, _COMPRESSION)
        self._block_bytes = number(self._postscript, _BLOCK, _BLOCK_BYTES)
        length = number(self._postscript, _FOOTER_LENGTH)
        begin = size_bytes - 1 - tail[-1] - length
        self._footer = self._section(begin, length)
        self._stripes = messages(self._footer, _STRIPES)

    def rows(self, stripe: int) -> int:
        """The number of rows of a stripe."""
        return number(self._stripes[stripe], _STRIPE_ROWS)

    def sizes(self, stripe: int, names: list[str], kinds: list[pa.DataType]) -> list[ColumnSizes]:
        """The sizes of the columns with these names and types in a stripe."""
        about = self._stripes[stripe]
        begin = sum(number(about, field) for field in (_OFFSET, _INDEX_LENGTH, _DATA_LENGTH))
        footer = self._section(begin, number(about, _STRIPE_FOOTER_LENGTH))
        streams = list(_streams(footer, number(about, _OFFSET)))
        encodings = messages(footer, _ENCODINGS)
        rows = number(about, _STRIPE_ROWS)
        places = self._places()
        found: list[ColumnSizes] = []
        for name, kind in zip(names, kinds, strict=True):
            column = places[name]
            own = {each.kind: each for each in streams if each.column == column}
            has_dictionary = column < len(encodings) and number(encodings[column], 1) in _WITH_DICTIONARY
            dictionary = self._length(own[_DICTIONARY]) if has_dictionary and _DICTIONARY in own else 0
            held = dictionary + sum(self._buffered(each) for each in own.values())
            if pa.types.is_string(kind) or pa.types.is_binary(kind):
                sums = self._sums(own, rows, dictionary, has_dictionary=has_dictionary)
                size = sum(total for _, total in sums)
                densest = max((total / max(count, 1) for count, total in sums), default=0.0)
                found.append(ColumnSizes(2 * size + _TEXT_BYTES * rows, 2 * densest + _TEXT_BYTES, held))
            else:
                width = -(-int(kind.bit_width) // 8) + max(_OWN_BYTES, kind.bit_width // 8)
                found.append(ColumnSizes(width * rows, width, held))
        return found

    def copy_stripe(self, stripe: int, target: Path) -> None:
        """Write a stripe as a separate file."""
        about = self._stripes[stripe]
        lengths = [number(about, field) for field in (_INDEX_LENGTH, _DATA_LENGTH, _STRIPE_FOOTER_LENGTH)]
        with target.open("wb") as file:
            file.write(_MAGIC)
            at, left = number(about, _OFFSET), sum(lengths)
            while left:
                data = self._bytes(at, min(left, _COPIED_BYTES))
                if not data:
                    raise pa.ArrowInvalid("a file ends within a stripe")
                file.write(data)
                at, left = at + len(data), left - len(data)
            file.write(self._tail_for(about, sum(lengths)))

    def _tail_for(self, about: Message, length: int) -> bytes:
        """The end of a file that has one stripe."""
        stripe = _rewritten(about, {_OFFSET: len(_MAGIC)})
        rows = number(about, _STRIPE_ROWS)
        changed: Changes = {_CONTENT_LENGTH: len(_MAGIC) + length, _STRIPES: stripe, _ROWS: rows}
        # Statistics of the whole file would be wrong here, and are not needed.
        footer = _rewritten({k: v for k, v in self._footer.items() if k != _STATISTICS}, changed)
        footer = uncompressed(footer, self._compression, self._block_bytes)
        changed = {_FOOTER_LENGTH: len(footer), _METADATA_LENGTH: 0, _STATISTICS_LENGTH: 0}
        postscript = _rewritten(self._postscript, changed)
        return footer + postscript + bytes((len(postscript),))

    def _places(self) -> dict[str, int]:
        """The numbers of the top-level columns in the file, by name."""
        table = messages(self._footer, _TYPES)[0]
        names = [each.decode() for each in table.get(3, []) if isinstance(each, bytes)]
        return dict(zip(names, numbers(table, 2), strict=True))

    def _sums(
        self, own: dict[int, _Stream], rows: int, dictionary: int, *, has_dictionary: bool
    ) -> list[tuple[int, int]]:
        """For each group of rows: their number, and an upper bound of the total length of their texts."""
        stride = number(self._footer, _STRIDE)
        if stride and _ROW_INDEX in own:
            index = self._section(own[_ROW_INDEX].begin, own[_ROW_INDEX].length)
            totals = [_sum_of(entry) for entry in messages(index, 1)]
            known = [total for total in totals if total is not None]
            if known and len(known) == len(totals) == -(-rows // stride):
                counts = [stride] * (len(known) - 1)
                return list(zip((*counts, rows - sum(counts)), known, strict=True))
        if has_dictionary:
            return [(rows, rows * dictionary)]
        return [(rows, self._length(own[_DATA]) if _DATA in own else 0)]

    def _buffered(self, stream: _Stream) -> int:
        """The bytes of a stream that the library buffers while it reads."""
        if stream.kind not in _READ_STREAMS:
            return 0
        read = min(stream.length, _READ_BYTES)
        if self._compression == NONE:
            return read
        return read + self._block_bytes + min(stream.length, self._block_bytes)

    def _length(self, stream: _Stream) -> int:
        """An upper bound of a stream's decompressed length."""
        if self._compression == NONE:
            return stream.length
        at, end, found = stream.begin, stream.begin + stream.length, 0
        while at < end:
            length, original = chunk_header(self._bytes(at, HEADER_BYTES))
            found += length if original else self._block_bytes
            at += HEADER_BYTES + length
        return found

    def _section(self, begin: int, length: int) -> Message:
        return message(decompressed(self._bytes(begin, length), self._compression))

    def _bytes(self, begin: int, length: int) -> bytes:
        if begin < 0:
            raise pa.ArrowInvalid("a file is shorter than it says")
        self._source.seek(begin, os.SEEK_SET)
        return bytes(self._source.read(length))


def _streams(footer: Message, offset: int) -> Iterator[_Stream]:
    """The streams of a stripe, which follow each other."""
    found = messages(footer, _STREAMS)
    ends = accumulate((number(each, 3) for each in found), initial=offset)
    for each, begin in zip(found, ends, strict=False):
        yield _Stream(number(each, 1), number(each, 2), begin, number(each, 3))


def _sum_of(entry: Message) -> int | None:
    """The total length of the texts of some rows; None if the index does not have it."""
    statistics = messages(entry, 2)
    if not statistics:
        return None
    for field, place in _SUMS:
        for each in messages(statistics[0], field):
            if place in each:
                return max(signed(number(each, place)), 0)
    return 0 if not number(statistics[0], 1) else None


def _rewritten(fields: Message, changed: Changes) -> bytes:
    """Encode a message with some fields changed, in the order of their numbers."""
    every: Message = {**fields, **{field: [value] for field, value in changed.items()}}
    return b"".join(written(field, value) for field in sorted(every) for value in every[field])
