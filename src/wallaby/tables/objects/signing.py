"""Sign requests to S3 with version 4 of Amazon's signatures."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from typing import Final
from urllib.parse import quote

from wallaby.relations.storage import S3Storage

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
#: The characters, beside letters and digits, that a signed address does not escape.
_PLAIN: Final = "-._~"


def path_text(path: str) -> str:
    """A path as it stands in an address."""
    return quote(path, safe=f"{_PLAIN}/")


def query_text(query: Mapping[str, str]) -> str:
    """The parameters of an address, in the order in which they are signed."""
    return "&".join(f"{quote(name, safe=_PLAIN)}={quote(query[name], safe=_PLAIN)}" for name in sorted(query))


def signed(
    storage: S3Storage,
    method: str,
    path: str,
    query: Mapping[str, str],
    headers: Mapping[str, str],
    body: bytes,
    now: datetime,
) -> dict[str, str]:
    """The headers of a request, with its signature; `path` is not escaped, and `headers` name the host."""
    digest = hashlib.sha256(body).hexdigest()
    moment = now.strftime("%Y%m%dT%H%M%SZ")
    found = {**headers, "x-amz-content-sha256": digest, "x-amz-date": moment}
    if storage.anonymous:
        return found
    if storage.session_token:
        found["x-amz-security-token"] = storage.session_token
    names = sorted(found, key=str.lower)
    listed = ";".join(name.lower() for name in names)
    lines = "".join(f"{name.lower()}:{found[name].strip()}\n" for name in names)
    request = "\n".join((method, path_text(path), query_text(query), lines, listed, digest))
    scope = f"{moment[:8]}/{storage.region}/s3/aws4_request"
    text = "\n".join((_ALGORITHM, moment, scope, hashlib.sha256(request.encode()).hexdigest()))
    secret = f"AWS4{storage.secret_key}".encode()
    for part in scope.split("/"):
        secret = hmac.digest(secret, part.encode(), "sha256")
    signature = hmac.digest(secret, text.encode(), "sha256").hex()
    found["Authorization"] = (
        f"{_ALGORITHM} Credential={storage.access_key}/{scope}, SignedHeaders={listed}, Signature={signature}"
    )
    return found
