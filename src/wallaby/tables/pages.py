"""Read the page headers of a column in a row group: decompressed sizes and numbers of values.

A footer has only totals for a column of a row group. The size of a single page, or of a dictionary, is in the header
before it, which Arrow reads but does not expose. Headers are structs in Thrift's compact protocol; only the needed
fields are read here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq

#: The bytes that are read at first; a header with long bounds is read again, with more.
_HEADER_BYTES: Final = 1 << 9
_HEADER_BYTES_MAX: Final = 1 << 24
_DICTIONARY_PAGE: Final = 2
_INDICES: Final = frozenset({2, 8})
_DELTA_BYTE_ARRAY: Final = 7
#: Fields of a page's header: its sizes, and the header of each kind of page with the field of its encoding.
_SIZE, _COMPRESSED_SIZE = 2, 3
_KINDS: Final = ((5, 2), (7, 2), (8, 4))


@dataclass(frozen=True, slots=True)
class Page:
    """A page, decompressed."""

    size_bytes: int
    values: int
    #: Does it hold the dictionary, or references to it?
    is_dictionary: bool
    has_indices: bool
    #: Are values stored without the prefix that they share with the value before?
    has_prefixes: bool


def pages_of(source: BinaryIO | pa.NativeFile, chunk: pq.ColumnChunkMetaData) -> Iterator[Page]:
    """The pages of a column in a row group, the dictionary first."""
    at = _first_page(chunk)
    end = at + chunk.total_compressed_size
    while at < end:
        page, length = _page(source, at)
        yield page
        at += length


def dictionary_of(source: BinaryIO | pa.NativeFile, chunk: pq.ColumnChunkMetaData) -> Page | None:
    """The page with the dictionary, if there is one."""
    page, _ = _page(source, _first_page(chunk))
    return page if page.is_dictionary else None


def _first_page(chunk: pq.ColumnChunkMetaData) -> int:
    """The position of the first page. Some writers do not record the dictionary's: then the pages begin with it."""
    first: int = chunk.data_page_offset
    if chunk.has_dictionary_page and chunk.dictionary_page_offset:
        first = min(first, chunk.dictionary_page_offset)
    return first


def _page(source: BinaryIO | pa.NativeFile, at: int) -> tuple[Page, int]:
    """The page whose header is at a position, and the length of header and page in the file."""
    fields, end = _header(source, at, _HEADER_BYTES)
    size, compressed = fields.get(_SIZE), fields.get(_COMPRESSED_SIZE)
    if not isinstance(size, int) or not isinstance(compressed, int) or size < 0 or compressed < 0:
        raise pa.ArrowInvalid(f"no header of a page at {at}")
    values, encoding = 0, -1
    for kind, place in _KINDS:
        inner = fields.get(kind)
        if isinstance(inner, dict):
            values, encoding = _number(inner.get(1)), _number(inner.get(place))
    is_dictionary = fields.get(1) == _DICTIONARY_PAGE
    indices = encoding in _INDICES and not is_dictionary
    return Page(size, values, is_dictionary, indices, encoding == _DELTA_BYTE_ARRAY), end + compressed


def _header(source: BinaryIO | pa.NativeFile, at: int, length: int) -> tuple[dict[int, object], int]:
    source.seek(at)
    data = source.read(length)
    try:
        return _struct(data, 0)
    except IndexError:
        if len(data) < length or length >= _HEADER_BYTES_MAX:
            raise pa.ArrowInvalid(f"no header of a page at {at}") from None
    return _header(source, at, length * 16)


def _number(found: object) -> int:
    return found if isinstance(found, int) else -1


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at


def _struct(data: bytes, at: int) -> tuple[dict[int, object], int]:
    """The fields of a struct by number, and the struct's end. Only numbers and structs are kept."""
    fields: dict[int, object] = {}
    number = 0
    while True:
        head = data[at]
        at += 1
        if not head:
            return fields, at
        kind = head & 0x0F
        if head >> 4:
            number += head >> 4
        else:
            raw, at = _varint(data, at)
            number = (raw >> 1) ^ -(raw & 1)
        fields[number], at = _value(data, at, kind)


def _value(data: bytes, at: int, kind: int) -> tuple[object, int]:
    match kind:
        case 1 | 2:  # true and false, which have no bytes
            return kind == 1, at
        case 3:
            return data[at], at + 1
        case 4 | 5 | 6:
            raw, at = _varint(data, at)
            return (raw >> 1) ^ -(raw & 1), at
        case 7:
            return None, at + 8
        case 8:
            length, at = _varint(data, at)
            if at + length > len(data):
                raise IndexError
            return None, at + length
        case 12:
            return _struct(data, at)
        case _:
            raise pa.ArrowInvalid("a field of a page's header that no page has")
