"""Text."""

from __future__ import annotations

from typing import Final

EXAMPLES: Final = {
    "StartsWith": ("startswith({string}, {string})", "{string} like 'a%'"),
    "EndsWith": ("endswith({string}, {string})", "{string} like '%m'"),
    "Contains": ("contains({string}, {string})", "{string} like '%ß%'"),
    "Like": (
        "{string} like '_p%m'",
        "{string} like '%a_b%'",
        "{string} like 'a/%b' escape '/'",
        "{string} not like '_'",
    ),
    "Substring": (
        "substring({string}, {small}, {small})",
        "substr({string}, {small})",
        "substring({string}, 0, 2)",
    ),
    "Upper": ("upper({string})",),
    "Lower": ("lower({string})",),
    "Concat": ("concat({string}, {string}, 'x')", "{string} || {number}"),
    "Length": ("length({string})", "char_length({digits})"),
    "StringTrim": ("trim({string})",),
}
