"""Name a query as its user would: by its SQL, or by the action and the line of the program that called it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

#: Longer texts are cut in one-line descriptions.
LINE_CHARACTERS: Final = 100
_BLANKS: Final = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class About:
    """How a user recognizes a query. Any field may be unknown.

    `sql` is the text that Spark parsed, with what Spark's settings redact taken out; `action` the method that was
    called (`collect`, `to_arrow`), `line` where in the user's program (`job.py:12`), and `description` what the program
    told Spark with `setJobDescription`.
    """

    sql: str = ""
    action: str = ""
    line: str = ""
    description: str = ""

    @property
    def text(self) -> str:
        """The query in one line: Spark's description, its SQL, or the action and where it was called."""
        if self.description or self.sql:
            return shortened(self.description or self.sql)
        return f"{self.action or 'a query'}{f' at {self.line}' if self.line else ''}"


NOTHING_KNOWN: Final = About()


def shortened(text: str, characters: int = LINE_CHARACTERS) -> str:
    """A text in one line, cut if it is long."""
    flat = _BLANKS.sub(" ", text).strip()
    return flat if len(flat) <= characters else flat[: characters - 1] + "…"
