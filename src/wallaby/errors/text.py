"""Encode errors as text, by which a worker tells the head, through the control store, why a query failed."""

from __future__ import annotations

import json

from wallaby.errors import QueryError, WallabyError, query_errors

#: The version of the encoding.
WIRE_VERSION = 1


def write_error(error: WallabyError) -> str:
    """Encode an error as one line of JSON."""
    fields = {name: value if isinstance(value, int) else str(value) for name, value in error.fields.items()}
    return json.dumps(
        {
            "version": WIRE_VERSION,
            "condition": error.getCondition(),
            "what": error.what,
            "fix": error.fix,
            "fields": fields,
        },
        sort_keys=True,
    )


def read_error(text: str, **more: object) -> QueryError:
    """Decode an error; any other text becomes the message of a plain `QueryError`."""
    try:
        said = json.loads(text)
        known = query_errors()
        kind = known.get(said["condition"], QueryError) if said["version"] == WIRE_VERSION else QueryError
        what, fix, fields = (
            str(said["what"]),
            str(said["fix"]),
            {str(k): v for k, v in said["fields"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return QueryError(text, fix="", **more)
    return kind(what, fix=fix, **{**fields, **more})
