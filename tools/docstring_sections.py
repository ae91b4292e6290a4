"""Let mkdocstrings show the section `Example:` of our docstrings as code: it knows only the plural."""

from __future__ import annotations

import re
from typing import Any

import griffe


class DocstringSections(griffe.Extension):  # type: ignore[misc]  # where types are checked, griffe is not installed
    """An extension of griffe, which reads the docstrings."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Rename the section, and take its lines as they are."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(
                r"^( *)Example:$", r"\1Examples:", obj.docstring.value, flags=re.MULTILINE
            )
