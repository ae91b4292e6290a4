"""Requests to a bucket: one script, on the fake that other tests use and on moto's server; and lost answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.stores import BUCKET, s3_server
from tests.tables.objects.fake_bucket import FakeBucket, Struck

from wallaby.relations.storage import S3Storage
from wallaby.tables.objects.bucket import Bucket
from wallaby.tables.objects.transport import HttpTransport, Request, Response, Transport

#: More than a server takes as the smallest part.
PART = bytes(5 << 20)
ODD = "t/p=a%2Fb/é &<x>+.parquet"


@pytest.fixture(scope="module")
def server() -> Iterator[Transport]:
    with s3_server() as address:
        yield HttpTransport(
            S3Storage(
                endpoint=address,
                region="us-east-1",
                encrypted=False,
                virtual_addressing=False,
                anonymous=False,
                access_key="someone",
                secret_key="secret",
            ),
            BUCKET,
        )


@pytest.fixture(params=["fake", "moto"])
def transport(request: pytest.FixtureRequest) -> Transport:
    return FakeBucket() if request.param == "fake" else request.getfixturevalue("server")


def test_objects_are_new_or_not_and_uploads_are_seen_when_they_are_complete(transport: Transport) -> None:
    bucket = Bucket(BUCKET, transport)
    for key in bucket.keys(""):
        bucket.delete(key)
    assert bucket.get(ODD) is None
    assert bucket.size(ODD) is None
    assert bucket.put_new(ODD, b"one")
    assert not bucket.put_new(ODD, b"two")
    found = bucket.get(ODD)
    assert found is not None
    assert found.body == b"one"
    assert 0 <= found.age_seconds < 60
    bucket.put(ODD, b"three")
    assert bucket.size(ODD) == 5
    bucket.delete(ODD)
    bucket.delete(ODD)
    upload, other = bucket.begin_upload(ODD), bucket.begin_upload(ODD)
    tags = [bucket.put_part(ODD, upload, number, data) for number, data in ((1, PART), (2, b"end"))]
    assert sorted(bucket.uploads("t/")) == sorted([(ODD, upload), (ODD, other)])
    assert list(bucket.keys("")) == []
    bucket.abort(ODD, other)
    if isinstance(transport, FakeBucket):  # moto fails, and answers 500
        assert not bucket.complete(ODD, other, tags)
    assert bucket.complete(ODD, upload, tags)
    bucket.abort(ODD, upload)
    assert list(bucket.keys("t/")) == [ODD]
    assert list(bucket.uploads("")) == []
    assert bucket.size(ODD) == len(PART) + 3
    with pytest.raises(OSError, match="PUT t/"):
        bucket.put_part(ODD, upload, 3, b"late")


def test_listings_have_several_pages() -> None:
    fake = FakeBucket()
    fake.page = 2
    bucket = Bucket(BUCKET, fake)
    keys = [f"k{number}" for number in range(5)]
    for key in keys:
        bucket.put(key, b"")
        bucket.begin_upload(key)
    assert list(bucket.keys("k")) == keys
    assert [key for key, _ in bucket.uploads("k")] == keys


class Failing:
    """A server that answers so, a number of times."""

    def __init__(self, answer: Response, times: int) -> None:
        self.answer, self.times = answer, times
        self.fake = FakeBucket()

    def send(self, request: Request) -> Response:
        self.times -= 1
        return self.answer if self.times >= 0 else self.fake.send(request)


LATE = Response(200, {}, b"<?xml version='1.0'?>\n<Error><Code>InternalError</Code></Error>")


@pytest.mark.parametrize("answer", [Response(503, {}, b""), LATE], ids=["busy", "late"])
def test_a_server_that_is_busy_is_asked_again_but_not_for_ever(answer: Response) -> None:
    waited: list[float] = []
    assert Bucket("b", Failing(answer, 2), waited.append).put_new("k", b"x")
    assert len(waited) == 2
    with pytest.raises(OSError, match="b: PUT k"):
        Bucket("b", Failing(answer, 3), waited.append).put("k", b"x")


def test_what_is_refused_is_not_asked_again() -> None:
    answer = Response(403, {}, b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>")
    with pytest.raises(OSError, match="403 AccessDenied: no"):
        Bucket("b", Failing(answer, 1)).put("k", b"x")


@pytest.mark.parametrize("after", [False, True], ids=["request", "answer"])
def test_a_lost_answer_is_not_taken_for_somebody_elses_object(*, after: bool) -> None:
    def lose() -> None:
        raise ConnectionResetError

    bucket = Bucket("b", Struck(FakeBucket(), 0, lose, after=after), lambda _: None)
    assert bucket.put_new("k", b"mine")
    assert not bucket.put_new("k", b"yours")
