"""Changes of an object that a PATCH describes: merge patches, strategic merge patches, JSON patches, and applying."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Final

from wallaby_lab.kubernetes.status import StatusError

#: An object that is to be there: it is made if it is not. Its fields replace those of other managers.
APPLY: Final = "application/apply-patch+yaml"


def patched(found: dict[str, Any], patch: Any, kind: str) -> Any:
    """The object after a patch of this media type.

    Raises:
        StatusError: 415, for another media type, and for a strategic merge of lists, which needs the merge keys of
            every list; 422, for a JSON patch that does not fit.
    """
    match kind.partition(";")[0].strip():
        case "application/merge-patch+json" | "application/apply-patch+yaml":
            return _merged(found, patch, may_have_lists=True)
        case "application/strategic-merge-patch+json":
            return _merged(found, patch, may_have_lists=False)
        case "application/json-patch+json":
            return _stepwise(found, patch)
        case other:
            raise StatusError(415, "UnsupportedMediaType", f"unknown kind of patch: {other}")


def _merged(found: Any, patch: Any, *, may_have_lists: bool) -> Any:
    """RFC 7396: null removes, objects are merged, and anything else replaces."""
    if not isinstance(patch, dict):
        if isinstance(patch, list) and patch and not may_have_lists:
            raise StatusError(415, "UnsupportedMediaType", "this server does not merge lists strategically")
        return patch
    result = dict(found) if isinstance(found, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value, may_have_lists=may_have_lists)
    return result


def _stepwise(found: dict[str, Any], steps: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """RFC 6902."""
    result = copy.deepcopy(found)
    for step in steps:
        try:
            _step(result, step)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise StatusError(422, "Invalid", f"the patch {step} does not fit: {error!r}") from error
    return result


def _step(result: dict[str, Any], step: dict[str, Any]) -> None:
    place, key = _at(result, step["path"])
    match step["op"]:
        case "add":
            _add(place, key, step["value"])
        case "replace":
            _ = place[key]
            place[key] = step["value"]
        case "remove":
            del place[key]
        case "copy":
            source, of = _at(result, step["from"])
            _add(place, key, copy.deepcopy(source[of]))
        case "move":
            source, of = _at(result, step["from"])
            moved = source[of]
            del source[of]
            _add(*_at(result, step["path"]), moved)
        case "test":
            if place[key] != step["value"]:
                raise ValueError(f"{place[key]!r} is there")
        case other:
            raise ValueError(f"unknown operation {other}")


def _at(result: dict[str, Any], path: str) -> tuple[Any, Any]:
    """What holds the value at a path, and its key or number there."""
    *way, last = (part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:])
    place: Any = result
    for part in way:
        place = place[int(part)] if isinstance(place, list) else place[part]
    if isinstance(place, list):
        return place, len(place) if last == "-" else int(last)
    return place, last


def _add(place: Any, key: Any, value: Any) -> None:
    if isinstance(place, list):
        place.insert(key, value)
    else:
        place[key] = value
