"""Translate Java's regular expressions for two other engines, where they have the same meaning.

A pattern is parsed and written twice: for RE2, DuckDB's engine, over texts without line breaks, and for Python's engine
over all texts. Both versions make Java's defaults explicit: character classes are those of ASCII, a dot excludes Java's
five line breaks, and `$` also matches before a final line break. What cannot be translated (Unicode classes, possessive
quantifiers, word boundaries, whose meaning changed with Java 19, …) is refused, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: Java's line breaks, besides the sequence of carriage return and line feed.
LINE_BREAKS: Final = "\n\r\x85\u2028\u2029"
_REPEATED_MAX: Final = 1000
_CLASSES: Final = {
    "d": "0-9",
    "w": "0-9A-Z_a-z",
    "s": "\\t-\\r ",
}
_NAMED: Final = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "Alpha": "A-Za-z",
    "Digit": "0-9",
    "Alnum": "0-9A-Za-z",
    "Punct": "!-/:-@\\[-`{-~",
    "Space": "\\t-\\r ",
    "XDigit": "0-9A-Fa-f",
    "ASCII": "\\x00-\\x7f",
}
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_SPECIAL: Final = frozenset("\\^$.|?*+()[]{}-&~#")
_DOLLAR: Final = f"(?:(?!(?<=\r)\n)(?=(?:\r\n|[{LINE_BREAKS}])?\\Z))"


class UnsafePatternError(ValueError):
    """A pattern that other engines may read differently. Never leaves the plan readers: it becomes a reason."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """One pattern for two engines: for RE2 over texts without line breaks (None if impossible), and for Python."""

    re2: str | None
    python: str
    groups: int
    #: Can it match the empty text?
    empty: bool
    #: Do the two versions agree only on texts without line breaks?
    breaks: bool


def translate(pattern: str) -> Pattern:
    """Translate a Java pattern for the other engines."""
    reader = _Reader(pattern)
    written = reader.alternatives()
    if reader.place < len(pattern):
        raise UnsafePatternError("it has a closing bracket too many")
    re2 = None if reader.only_python or "\0" in pattern else written.re2
    return Pattern(re2, written.python, reader.groups, written.empty, reader.breaks)


@dataclass(frozen=True, slots=True)
class _Piece:
    re2: str
    python: str
    empty: bool
    #: Does it have a capturing group?
    captures: bool = False

    @staticmethod
    def both(text: str, *, empty: bool = False) -> _Piece:
        return _Piece(text, text, empty)


@dataclass(slots=True)
class _Reader:
    text: str
    place: int = 0
    groups: int = 0
    folding: bool = False
    only_python: bool = False
    breaks: bool = False

    def alternatives(self) -> _Piece:
        """Parse sequences separated by |, up to a closing bracket or the end."""
        found = [self._sequence()]
        while self._take("|"):
            found.append(self._sequence())
        return _Piece(
            "|".join(piece.re2 for piece in found),
            "|".join(piece.python for piece in found),
            any(piece.empty for piece in found),
            any(piece.captures for piece in found),
        )

    def _sequence(self) -> _Piece:
        pieces: list[_Piece] = []
        while self.place < len(self.text) and self.text[self.place] not in "|)":
            pieces.append(self._quantified())
        return _Piece(
            "".join(piece.re2 for piece in pieces),
            "".join(piece.python for piece in pieces),
            all(piece.empty for piece in pieces),
            any(piece.captures for piece in pieces),
        )

    def _quantified(self) -> _Piece:
        piece = self._atom()
        quantifier, least = self._quantifier()
        if not quantifier:
            return piece
        if piece.empty:
            raise UnsafePatternError("it repeats something that may be empty")
        return _Piece(piece.re2 + quantifier, piece.python + quantifier, least == 0, piece.captures)

    def _quantifier(self) -> tuple[str, int]:
        rest = self.text[self.place : self.place + 1]
        if not rest or rest not in "*+?{":
            return "", 1
        begin, least = self.place, 1 if rest == "+" else 0
        if rest == "{":
            least = self._counts()
        else:
            self.place += 1
        if self._take("+"):
            raise UnsafePatternError("it has a possessive quantifier")
        self._take("?")
        if self.place < len(self.text) and self.text[self.place] in "*+?{":
            raise UnsafePatternError("it has a quantifier of a quantifier")
        return self.text[begin : self.place], least

    def _counts(self) -> int:
        end = self.text.find("}", self.place)
        low, comma, high = self.text[self.place + 1 : end].partition(",")
        digits = [low, *([high] if high else [])]
        if end < 0 or not all(part.isascii() and part.isdigit() for part in digits):
            raise UnsafePatternError("it has a brace that is not part of a quantifier")
        if max(map(int, digits)) > _REPEATED_MAX or (comma and high and int(high) < int(low)):
            raise UnsafePatternError("it repeats something too often")
        self.place = end + 1
        return int(low)

    def _atom(self) -> _Piece:
        character = self._next()
        match character:
            case "(":
                return self._group()
            case "[":
                return _Piece.both(self._class())
            case "\\":
                return self._escape()
            case ".":
                self.breaks = True
                return _Piece("[^\\n]", f"[^{LINE_BREAKS}]", empty=False)
            case "^":
                return _Piece("\\A", "\\A", empty=True)
            case "$":
                self.breaks = True
                return _Piece("\\z", _DOLLAR, empty=True)
            case "*" | "+" | "?" | "{":
                raise UnsafePatternError("it has a quantifier with nothing to repeat")
            case _:
                return _Piece.both(self._literal(character))

    def _group(self) -> _Piece:
        opening = "("
        if self._take("?"):
            opening = self._special_group()
            if not opening:
                return _Piece.both("", empty=True)
        else:
            self.groups += 1
        inner = self.alternatives()
        if not self._take(")"):
            raise UnsafePatternError("a closing bracket is missing")
        looking = opening[:3] in ("(?=", "(?!", "(?<")
        return _Piece(
            f"{opening}{inner.re2})",
            f"{opening}{inner.python})",
            inner.empty or looking,
            opening == "(" or inner.captures,
        )

    def _special_group(self) -> str:
        """The opening of a group that begins with a question mark; empty for flags at the beginning."""
        if self._take(":"):
            return "(?:"
        if self.text.startswith("i)", self.place) and self.place == len("(?"):
            self.place += 2
            self.folding = True
            return ""
        for opening in ("=", "!", "<=", "<!"):
            if self._take(opening):
                self.only_python = True
                return f"(?{opening}"
        if self._take("<"):
            name, _, _ = self.text[self.place :].partition(">")
            if not (name.isascii() and name.isalnum()):
                raise UnsafePatternError("it has a group with an unsupported name")
            self.place += len(name) + 1
            self.groups += 1
            return "("
        raise UnsafePatternError("it has flags or a kind of group that is not supported")

    def _escape(self) -> _Piece:
        character = self._next()
        if character in "Az":
            return _Piece(f"\\{character}", f"\\{character.upper()}", empty=True)
        if character.lower() in _CLASSES or character in "pP":
            negative, members = self._members(character)
            return _Piece.both(f"[{'^' if negative else ''}{members}]")
        return _Piece.both(self._literal(self._escaped(character)))

    def _members(self, character: str) -> tuple[bool, str]:
        """The characters of a class that is written as an escape sequence."""
        if character.lower() in _CLASSES:
            return character.isupper(), _CLASSES[character.lower()]
        end = self.text.find("}", self.place)
        name = self.text[self.place + 1 : end]
        if not self.text.startswith("{", self.place) or name not in _NAMED:
            raise UnsafePatternError("it has a Unicode class")
        if self.folding:
            raise UnsafePatternError("it has a class and ignores case")
        self.place = end + 1
        return character == "P", _NAMED[name]

    def _escaped(self, character: str) -> str:
        """The character that an escape sequence represents."""
        if character in _CONTROLS:
            return _CONTROLS[character]
        if character in "xu":
            digits = self.text[self.place : self.place + (2 if character == "x" else 4)]
            try:
                code = int(digits, 16)
            except ValueError:
                raise UnsafePatternError("it has an unsupported escape sequence") from None
            if (
                not digits.isalnum()
                or len(digits) != (2 if character == "x" else 4)
                or 0xD800 <= code <= 0xDFFF
            ):
                raise UnsafePatternError("it has an unsupported escape sequence")
            self.place += len(digits)
            return chr(code)
        if character.isalnum() or not character.isascii():
            raise UnsafePatternError(f"\\{character} is not supported")
        return character

    def _literal(self, character: str) -> str:
        if self.folding and character.isascii() and character.isalpha():
            return f"[{character.lower()}{character.upper()}]"
        return _quoted(character)

    def _class(self) -> str:
        negative = self._take("^")
        members: list[str] = []
        while not self._take("]"):
            if self.text.startswith(("[", "&&"), self.place):
                raise UnsafePatternError("it has a class within a class")
            members.append(self._member())
        if not members:
            raise UnsafePatternError("it has an empty class")
        return f"[{'^' if negative else ''}{''.join(members)}]"

    def _member(self) -> str:
        """Parse a character, a range or a class inside a character class."""
        character = self._next()
        if character == "\\":
            escaped = self._next()
            if escaped.lower() in _CLASSES or escaped in "pP":
                negative, members = self._members(escaped)
                if negative:
                    raise UnsafePatternError("it has a negative class within a class")
                return members
            character = self._escaped(escaped)
        if not self.text.startswith("-", self.place) or self.text[self.place + 1 : self.place + 2] in (
            "]",
            "",
        ):
            return self._folded(character, character)
        self.place += 1
        last = self._next()
        if last == "[":
            raise UnsafePatternError("it has a class within a class")
        if last == "\\":
            last = self._escaped(self._next())
        if last < character or self.text.startswith("-", self.place):
            raise UnsafePatternError("it has an unsupported range")
        return self._folded(character, last)

    def _folded(self, first: str, last: str) -> str:
        shown = _quoted(first) if first == last else f"{_quoted(first)}-{_quoted(last)}"
        if not self.folding:
            return shown
        for low, high, to in (("a", "z", str.upper), ("A", "Z", str.lower)):
            begin, end = max(first, low), min(last, high)
            if begin <= end:
                shown += f"{to(begin)}-{to(end)}"
        return shown

    def _next(self) -> str:
        if self.place >= len(self.text):
            raise UnsafePatternError("it ends too early")
        self.place += 1
        return self.text[self.place - 1]

    def _take(self, expected: str) -> bool:
        if not self.text.startswith(expected, self.place):
            return False
        self.place += len(expected)
        return True


def _quoted(character: str) -> str:
    return "\\" + character if character in _SPECIAL else character


def replacement(text: str, groups: int) -> tuple[str | int, ...]:
    """Parse a replacement: texts, and numbers of groups. A dollar sign takes as many digits as form a valid group."""
    parts: list[str | int] = []
    place = 0
    while place < len(text):
        character = text[place]
        place += 1
        if character == "\\":
            if place == len(text):
                raise UnsafePatternError("the replacement ends with a backslash")
            parts.append(text[place])
            place += 1
        elif character == "$":
            if not (text[place : place + 1].isascii() and text[place : place + 1].isdigit()):
                raise UnsafePatternError("the replacement names a group by a word")
            number = int(text[place])
            place += 1
            while text[place : place + 1].isascii() and text[place : place + 1].isdigit():
                longer = number * 10 + int(text[place])
                if longer > groups:
                    break
                number, place = longer, place + 1
            if number > groups:
                raise UnsafePatternError("the replacement names a group that does not exist")
            parts.append(number)
        else:
            parts.append(character)
    return tuple(parts)
