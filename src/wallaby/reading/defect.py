"""A bug of Wallaby's in reading or planning a query must not cost the user the answer: Spark runs the query.

Nothing has run yet at that point, so nothing can be half done. The bug is logged with its traceback, and becomes a
reason like any other. Errors about the data or the files (`WallabyError`s) are no bugs and reach the user.
"""

from __future__ import annotations

import logging
from typing import Final

from wallaby.errors import InternalError
from wallaby.relations.reason import Reason

_log = logging.getLogger(__name__)

#: The exceptions that a wrong assumption about a plan ends in.
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
    """Log a bug, and turn it into a reason."""
    if isinstance(error, RecursionError):
        return Reason("plan", "it is nested too deeply")
    _log.warning("A bug while %s; Spark runs the query.", doing, exc_info=error)
    what = f"{type(error).__name__}: {error}".partition("\n")[0]
    return Reason("plan", f"{doing} it failed with {what}", "please report it with the query")
