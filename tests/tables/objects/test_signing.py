"""Signatures of requests, compared with those of Amazon's own library: moto's server does not look at them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from botocore import auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from wallaby.relations.storage import S3Storage
from wallaby.tables.objects.signing import path_text, query_text, signed

STORAGE = S3Storage("", "eu-west-1", True, True, False, "AKIA-someone", "very-secret")
NOW = datetime(2026, 11, 19, 8, 5, 3, tzinfo=UTC)
HOST = "lake.s3.eu-west-1.amazonaws.com"


@pytest.mark.parametrize(
    ("method", "path", "query", "headers", "body"),
    [
        ("GET", "/", {"list-type": "2", "prefix": "t/p=a%2Fb é&+", "continuation-token": "a/b=="}, {}, b""),
        ("PUT", "/t/p=a%2Fb/é ~x!*'()+.parquet", {}, {"if-none-match": "*"}, b"rows"),
        ("POST", "/t/x", {"uploads": ""}, {}, b""),
        ("PUT", "/bucket/t/x", {"partNumber": "1", "uploadId": "a_b.c-d/e"}, {}, bytes(10)),
    ],
)
@pytest.mark.parametrize("token", ["", "short-lived/+="])
def test_a_signature_is_the_one_that_amazon_expects(
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    path: str,
    query: dict[str, str],
    headers: dict[str, str],
    body: bytes,
    token: str,
) -> None:
    ours = signed(
        replace(STORAGE, session_token=token), method, path, query, {"host": HOST, **headers}, body, NOW
    )
    address = f"https://{HOST}{path_text(path)}?{query_text(query)}"
    theirs = AWSRequest(
        method, address, {**headers, "x-amz-content-sha256": ours["x-amz-content-sha256"]}, body
    )
    monkeypatch.setattr(auth, "get_current_datetime", lambda: NOW.replace(tzinfo=None), raising=False)
    credentials = Credentials(STORAGE.access_key, STORAGE.secret_key, token or None)
    auth.S3SigV4Auth(credentials, "s3", STORAGE.region).add_auth(theirs)
    assert ours["Authorization"] == theirs.headers["Authorization"]


def test_an_anonymous_request_has_no_signature() -> None:
    found = signed(replace(STORAGE, anonymous=True), "GET", "/x", {}, {"host": HOST}, b"", NOW)
    assert "Authorization" not in found
