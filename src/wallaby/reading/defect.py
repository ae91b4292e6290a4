"""A defect of ours while a query is read or planned must not cost the user the answer: Spark runs the query.

Nothing has run yet at that point, so nothing can be half done. The defect is logged with its story, and is a reason
like any other. Errors about the data or the files (`WallabyError`s) are no defects and go on to the user.
"""

from __future__ import annotations

import logging
from typing import Final

from wallaby.errors import InternalError
from wallaby.relations.reason import Reason

_log = logging.getLogger(__name__)

#: What a wrong assumption about a plan ends in.
DEFECTS: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    InternalError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


def defect(doing: str, error: Exception) -> Reason:
    """The reason that a defect is, after it has been logged."""
    if isinstance(error, RecursionError):
        return Reason("plan", "it is nested too deeply")
    _log.warning("A defect while %s; Spark runs the query.", doing, exc_info=error)
    what = f"{type(error).__name__}: {error}".partition("\n")[0]
    return Reason("plan", f"{doing} it failed with {what}", "please report it with the query")
