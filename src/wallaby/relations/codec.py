"""Convert frozen dataclasses to JSON values and back, driven by their annotations; decoding trusts nothing.

A record is `{"is": "Filter", "child": …, "condition": …}`: its class by name, out of a closed set, and its
fields by theirs. Decoding checks every value against the field's annotation, so bytes from elsewhere either
make a well-typed tree or an error; no name in them ever reaches an import. Records that are shared a lot
(columns, types, files) stand once in a table and are referred to by number.

Literal values: null, true, whole numbers and texts are themselves; the rest is `{"decimal": "1.50"}`,
`{"double": "0x1.8p+0"}`, `{"date": "1998-09-02"}`, `{"timestamp": "…"}`, `{"binary": "base64"}`; nested ones are
lists of such.
"""

from __future__ import annotations

import types
import typing
from base64 import b64decode, b64encode
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum

from wallaby.errors import EncodingError

T = typing.TypeVar("T")
Json = None | bool | int | str | list["Json"] | dict[str, "Json"]
#: Cached per class.
_KNOWN: dict[type, tuple[tuple[str, object], ...]] = {}


class Codec:
    """Writes and reads records of a closed set of classes; those in `shared` are written once each."""

    def __init__(self, shared: tuple[type, ...]) -> None:
        self._shared = shared
        self._numbers: dict[object, int] = {}
        self.table: list[Json] = []
        self._records: list[object] = []

    # --- writing -------------------------------------------------------------------------------------------

    def write(self, value: object, annotation: object) -> Json:
        """A value of an annotated type as JSON."""
        if annotation is object:
            return _write_literal(value)
        if isinstance(value, Enum):
            return str(value.value)
        if isinstance(value, tuple):
            (item,) = _items(annotation)
            return [self.write(one, item) for one in value]
        if is_dataclass(value) and not isinstance(value, type):
            return self._write_shared(value) if isinstance(value, self._shared) else self._write_record(value)
        if isinstance(value, float):
            return _write_literal(value)
        assert value is None or isinstance(value, bool | int | str), f"no plan holds a {type(value).__name__}"
        return value

    def _write_shared(self, record: object) -> Json:
        if record not in self._numbers:
            written = self._write_record(
                record
            )  # first, because the records that it refers to must come before it
            self._numbers[record] = len(self.table)
            self.table.append(written)
        return self._numbers[record]

    def _write_record(self, record: object) -> Json:
        written: dict[str, Json] = {"is": type(record).__name__}
        for name, annotation in _annotations(type(record)):
            written[name] = self.write(getattr(record, name), annotation)
        return written

    # --- reading -------------------------------------------------------------------------------------------

    def read_table(self, table: Json) -> None:
        """The shared records; each may refer to those before it."""
        classes = {cls.__name__: cls for cls in self._shared}
        for written in _expect(table, list):
            self._records.append(self._read_record(written, classes))

    def read(self, written: Json, annotation: object) -> object:
        """Read a value of the annotated type from its JSON form."""
        if annotation is object:
            return _read_literal(written)
        choices = typing.get_args(annotation) if _is_union(annotation) else (annotation,)
        if written is None and type(None) in choices:
            return None
        classes = {c.__name__: c for c in choices if is_dataclass(c) and isinstance(c, type)}
        if classes:
            if isinstance(written, int) and not isinstance(written, bool):
                return self._shared_record(written, classes)
            return self._read_record(written, classes)
        if float in choices:
            return _read_number(written)
        (choice,) = (c for c in choices if c is not type(None))
        if typing.get_origin(choice) is tuple:
            (item,) = _items(choice)
            return tuple(self.read(one, item) for one in _expect(written, list))
        if isinstance(choice, type) and issubclass(choice, Enum):
            return choice(_expect(written, str))
        assert choice in (int, str, bool), f"plans have no fields of type {choice}"
        return _expect(written, choice)

    def _shared_record(self, number: int, classes: dict[str, type]) -> object:
        if not 0 <= number < len(self._records):
            raise EncodingError(f"A plan refers to the shared record {number}, which it does not have.")
        record = self._records[number]
        if type(record) not in classes.values():
            raise EncodingError(f"A plan has a {type(record).__name__} where {sorted(classes)} may stand.")
        return record

    def _read_record(self, written: Json, classes: dict[str, type]) -> object:
        record: dict[str, Json] = _expect(written, dict)
        cls = classes.get(str(record.get("is")))
        if cls is None:
            raise EncodingError(f"A plan has {record.get('is')!r} where {sorted(classes)} may stand.")
        known = _annotations(cls)
        if record.keys() - {"is"} != {name for name, _ in known}:
            raise EncodingError(f"A plan has a {cls.__name__} with fields {sorted(record)}.")
        return cls(**{name: self.read(record[name], annotation) for name, annotation in known})


def _annotations(cls: type) -> tuple[tuple[str, object], ...]:
    """The fields of a record, with their types."""
    if cls not in _KNOWN:
        assert is_dataclass(cls)
        hints = typing.get_type_hints(cls)
        _KNOWN[cls] = tuple((field.name, hints[field.name]) for field in fields(cls) if field.init)
    return _KNOWN[cls]


def _is_union(annotation: object) -> bool:
    return typing.get_origin(annotation) in (typing.Union, types.UnionType)


def _items(annotation: object) -> tuple[object, ...]:
    """The type of a tuple's items."""
    choices = typing.get_args(annotation) if _is_union(annotation) else (annotation,)
    (item, rest) = next(typing.get_args(c) for c in choices if typing.get_origin(c) is tuple)
    assert rest is Ellipsis, "plans have only tuples of any length"
    return (item,)


def _expect(value: object, kind: type[T]) -> T:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise EncodingError(f"A plan has {value!r:.60} where a {kind.__name__} should stand.")
    return value


def _read_number(written: Json) -> int | float:
    value = _read_literal(written)
    return value if isinstance(value, float) else _expect(value, int)


def _write_literal(value: object) -> Json:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return {"double": value.hex()}
        case Decimal():
            return {"decimal": str(value)}
        case datetime():
            return {"timestamp": value.isoformat()}
        case date():
            return {"date": value.isoformat()}
        case bytes():
            return {"binary": b64encode(value).decode()}
        case tuple():
            return [_write_literal(part) for part in value]
        case _:
            raise EncodingError(f"A literal of type {type(value).__name__} cannot be written.")


_READERS: dict[str, typing.Callable[[str], object]] = {
    "double": float.fromhex,
    "decimal": Decimal,
    "timestamp": datetime.fromisoformat,
    "date": date.fromisoformat,
    "binary": lambda text: b64decode(text, validate=True),
}


def _read_literal(written: Json) -> object:
    if isinstance(written, list):
        return tuple(_read_literal(part) for part in written)
    if not isinstance(written, dict):
        return written
    ((kind, text),) = written.items()
    if kind not in _READERS:
        raise EncodingError(f"A plan has a literal of the unknown kind {kind!r}.")
    return _READERS[kind](_expect(text, str))
