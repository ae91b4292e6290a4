"""What was written to the durable store is known again, and nothing else is taken for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from wallaby.errors import DurableStoreError
from wallaby.exchange.body import encode
from wallaby.exchange.durable import DurableStore
from wallaby.exchange.sealed import checksum_of, read_batches, read_words, sealed

NAME = "q/outputs/s2.c1.t7-1"
WORDS = {"bodies": [[0, 8]], "edges": []}
DATA = b"the data"
BATCHES = tuple(pa.record_batch({"n": pa.array(range(size), pa.int64())}) for size in (3, 0, 1000))


@pytest.fixture
def store(tmp_path: Path) -> DurableStore:
    return DurableStore(str(tmp_path), "e")


def written(store: DurableStore, data: bytes, name: str = NAME) -> None:
    store.write(name, [pa.py_buffer(data)])


def test_the_bytes_of_words_are_fixed() -> None:
    text = b'{"name": "q/outputs/s2.c1.t7-1", "bodies": [[0, 8]], "edges": []}'
    data = sealed(NAME, WORDS).to_pybytes()
    assert data == b"wallaby\x01" + len(text).to_bytes(8, "little") + data[16:24] + text
    assert data[16:24].hex() == "c2e2a5dd97893bf6"


def test_words_come_back_and_say_where_they_end(store: DurableStore) -> None:
    store.write(NAME, [sealed(NAME, WORDS), pa.py_buffer(DATA)])
    words, end = read_words(store, NAME)
    assert words == {"name": NAME, **WORDS}
    assert store.read(NAME, end).to_pybytes() == DATA


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: b"",
        lambda _: b"\0" * 500,
        lambda _: b"{}",
        lambda data: data[:20],
        lambda data: data[:40],
        lambda data: data[:-1],
        lambda data: data[:8] + b"\xff" * 8 + data[16:],
        lambda data: b"wallaby\2" + data[8:],
        lambda _: sealed("q/outputs/s2.c1.t8-1", WORDS).to_pybytes(),
    ],
    ids=["empty", "zeros", "text", "cut", "cut later", "one less", "endless", "another version", "another's"],
)
def test_words_that_were_spoilt_are_an_error_that_names_the_object(
    store: DurableStore, spoil: Callable[[bytes], bytes]
) -> None:
    written(store, spoil(sealed(NAME, WORDS).to_pybytes()))
    with pytest.raises(DurableStoreError, match=r"s2\.c1\.t7-1"):
        read_words(store, NAME)


def test_words_of_which_any_one_bit_was_changed_are_an_error(store: DurableStore) -> None:
    whole = sealed(NAME, WORDS).to_pybytes()
    for at in range(len(whole) * 8):
        changed = bytearray(whole)
        changed[at // 8] ^= 1 << at % 8
        written(store, bytes(changed))
        with pytest.raises(DurableStoreError, match=r"s2\.c1\.t7-1"):
            read_words(store, NAME)


@pytest.mark.parametrize("text", [b"", b"[1]", b"null", b"{}", b"\xff"])
def test_words_that_are_no_words_are_an_error_even_with_the_right_checksum(
    store: DurableStore, text: bytes
) -> None:
    checksum = checksum_of(pa.py_buffer(text)).to_bytes(8, "little")
    written(store, b"wallaby\1" + len(text).to_bytes(8, "little") + checksum + text)
    with pytest.raises(DurableStoreError, match="header does not describe it"):
        read_words(store, NAME)


def test_batches_come_back_only_as_they_were(store: DurableStore) -> None:
    data = encode(BATCHES)
    checksum = checksum_of(data)
    store.write(NAME, [pa.py_buffer(b"12345678"), data])
    assert read_batches(store, NAME, 3, checksum, 8) == BATCHES
    assert read_batches(store, NAME, 3, checksum, 8, data.size) == BATCHES
    for count, other, offset, why in (
        (3, checksum, 0, "its data was changed"),
        (3, checksum ^ 1, 8, "its data was changed"),
        (2, checksum, 8, "3 batches, not 2"),
        (1, checksum_of(pa.py_buffer(b"12345678")), 0, "not an Arrow stream"),
    ):
        with pytest.raises(DurableStoreError, match=rf"{NAME}.*{why}"):
            read_batches(store, NAME, count, other, offset, 8 if "Arrow" in why else None)


def test_a_changed_value_that_still_parses_is_an_error(store: DurableStore) -> None:
    data = bytearray(encode(BATCHES).to_pybytes())
    checksum = checksum_of(pa.py_buffer(bytes(data)))
    at = data.rindex((999).to_bytes(8, "little"))
    data[at] ^= 1
    written(store, bytes(data))
    with pytest.raises(DurableStoreError, match="its data was changed"):
        read_batches(store, NAME, 3, checksum)
