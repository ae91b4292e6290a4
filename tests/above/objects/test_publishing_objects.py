"""Publishing to a bucket, cut off at every single request: the table is the old one or the new one.

The grid is whole. A write is run once for each request that it makes, and right before it, or right after the server
has carried it out, something happens: the process ends; the answer is lost; or it is stopped for so long that another
program takes it for dead, settles the write and makes one of its own, and then it wakes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

import pytest
from tests.tables.objects.fake_bucket import FakeBucket, Killed, Struck

from wallaby.above.objects import publication as publication_module
from wallaby.above.objects import settling
from wallaby.above.objects.keys import ObjectKey
from wallaby.above.objects.publication import ObjectPublication, UnsuitableBucketError
from wallaby.above.objects.settling import SILENCE_SECONDS, recover
from wallaby.errors import WriteError
from wallaby.node.process_identity import this_process
from wallaby.tables.objects.bucket import Bucket
from wallaby.tables.objects.layout import WriteFolder
from wallaby.tables.objects.transport import Request, Response, Transport
from wallaby.tables.objects.uploading import upload_file

TABLE = "lake/t"
JOBS = tuple(f"{number}" * 8 + "-0000-0000-0000-" + f"{number}" * 12 for number in range(1, 4))


@dataclass(frozen=True)
class Case:
    """A write: the files of the table before, the new ones, and what Spark says of it."""

    name: str
    before: tuple[str, ...]
    files: tuple[str, ...]
    #: What is left of what was there.
    stays: tuple[str, ...]
    replaced: tuple[str, ...] = ()
    dynamic: bool = False


CASES = (
    Case("new", (), ("", "p=1/"), ()),
    Case("append", ("x", "p=1/y"), ("p=1/", "p=3/q=4/"), ("x", "p=1/y")),
    Case("overwrite", ("x", "p=1/y"), ("", "p=2/"), (), ("",)),
    Case("overwrite by nothing", ("x",), (), (), ("",)),
    Case("one partition", ("p=1/q=1/x", "p=2/y", "p=11/z"), ("p=1/q=2/",), ("p=2/y", "p=11/z"), ("p=1",)),
    Case("dynamic", ("p=1/x", "p=2/y"), ("p=1/", "p=3/"), ("p=2/y",), dynamic=True),
)


def name_of(folder: str, job: str) -> str:
    return f"{folder}part-00000-{job}-0-{0:016x}-c000.parquet"


def fill(upload: object) -> None:
    upload.write(b"rows")  # type: ignore[attr-defined]


def write(transport: Transport, case: Case, job: str, key: str | None = "monday") -> bool:
    """What a program and its TaskManagers do, from the key to the end. False if the key says that it is done."""
    bucket = Bucket("b", transport, lambda _: None)
    keyed = None if key is None else ObjectKey(bucket, TABLE, key)
    if keyed is not None and not keyed.begin():
        return False
    publication = ObjectPublication(
        bucket, TABLE, job, replaced=case.replaced, dynamic=case.dynamic, key=keyed
    )
    try:
        folder = WriteFolder.of(bucket, publication.folder)
        files = [
            (name, upload_file(folder, name, fill)) for name in (name_of(each, job) for each in case.files)
        ]
        upload_file(folder, name_of("never-committed/", job), fill)
        bucket.begin_upload(folder.file(name_of("", job)))  # by an attempt that ended early
        publication.stage(files)
        publication.publish()
        publication.finish()
    except (WriteError, OSError):
        publication.abandon()
        raise
    finally:
        publication._beats.stop()
    return True


def make_table(case: Case) -> FakeBucket:
    fake = FakeBucket()
    for name in case.before:
        fake._keep(f"{TABLE}/{name}", b"old")
    fake._keep(f"{TABLE}/_temporary/0/", b"")
    fake._keep("lake/t2/of-another-table", b"")
    fake.uploads["theirs"] = f"{TABLE}/part-00000-{JOBS[0]}-c000.parquet", {}  # of Spark's
    return fake


def visible(fake: FakeBucket) -> set[str]:
    """The files that readers see."""
    found = (PurePosixPath(key).relative_to(TABLE) for key in fake.objects if key.startswith(f"{TABLE}/"))
    return {str(path) for path in found if not any(part[0] in "._" for part in path.parts)}


def after(case: Case, *jobs: str) -> set[str]:
    """What is visible after the writes of these jobs."""
    found = set(case.before)
    for job in jobs:
        mine = {name_of(folder, job) for folder in case.files}
        folders = {str(PurePosixPath(name).parent) for name in mine} if case.dynamic else set(case.replaced)
        found = {name for name in found if not any(_is_in(name, folder) for folder in folders)} | mine
    return found


def _is_in(name: str, folder: str) -> bool:
    return not folder or name.startswith(f"{folder}/")


def is_clean(fake: FakeBucket) -> bool:
    """Is nothing left of any write, and everything that is not ours?"""
    left = [key for key in fake.objects if "_wallaby_writes" in key]
    return not left and list(fake.uploads) == ["theirs"] and "lake/t2/of-another-table" in fake.objects


def struck(
    case: Case, strike: Callable[[FakeBucket], None], at: int, *, late: bool, key: str | None
) -> tuple[FakeBucket, object, bool]:
    """Write, with something that happens at a request; the bucket, the outcome, and whether it happened."""
    fake = make_table(case)
    way = Struck(fake, at, lambda: strike(fake), after=late)
    outcome: object
    try:
        outcome = write(way, case, JOBS[0], key)
    except (Killed, WriteError, OSError) as error:
        outcome = error
    return fake, outcome, way.has_struck


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests are sent one after the other, and a process is dead when it has been silent for long."""
    monkeypatch.setattr("wallaby.above.objects.publication.each", _in_order)
    monkeypatch.setattr(settling, "each", _in_order)


def _in_order(act: Callable[[object], object], items: object) -> list[object]:
    return [act(item) for item in items]  # type: ignore[attr-defined]


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("keyed", [False, True], ids=["plain", "keyed"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_driver_that_is_killed_at_any_request_leaves_the_old_table_or_the_new_one(
    case: Case, *, keyed: bool, late: bool
) -> None:
    def kill(_: FakeBucket) -> None:
        raise Killed

    outcomes = set()
    fake = make_table(case)
    for at in range(1000):
        fake, outcome, has_struck = struck(case, kill, at, late=late, key="monday" if keyed else None)
        if not has_struck:
            assert outcome is True
            break
        assert isinstance(outcome, Killed)
        fake.seconds += SILENCE_SECONDS + 1
        if keyed:  # the same program again
            changed = write(fake, case, JOBS[1])
            assert visible(fake) == after(case, JOBS[1] if changed else JOBS[0]), at
            assert not write(fake, case, JOBS[2])
        else:
            recover(Bucket("b", fake), TABLE)
            changed = visible(fake) == after(case)
            assert changed or visible(fake) == after(case, JOBS[0]), at
        outcomes.add(changed)
        assert is_clean(fake), at
    assert at > 10
    assert visible(fake) == after(case, JOBS[0])
    assert is_clean(fake)
    assert outcomes == {True, False}, "some ends come before the request that counts, and some after"


@pytest.mark.parametrize("late", [False, True], ids=["request", "answer"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_lost_request_or_answer_changes_nothing(case: Case, *, late: bool) -> None:
    def lose(_: FakeBucket) -> None:
        raise ConnectionResetError

    for at in range(1000):
        fake, outcome, has_struck = struck(case, lose, at, late=late, key="monday")
        assert outcome is True, at
        assert visible(fake) == after(case, JOBS[0]), at
        assert not write(fake, case, JOBS[1])
        assert is_clean(fake), at
        if not has_struck:
            break
    assert at > 10


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("keyed", [False, True], ids=["plain", "keyed"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_driver_that_wakes_after_another_program_has_written_publishes_nothing_or_has_published(
    case: Case, *, keyed: bool, late: bool
) -> None:
    """It is told so: what it returns is what the table shows."""
    key = "monday" if keyed else None

    def overtake(fake: FakeBucket) -> None:
        fake.seconds += SILENCE_SECONDS + 1
        wrote.append(write(fake, case, JOBS[1], key))

    undone = 0
    for at in range(1000):
        wrote: list[bool] = []
        fake, outcome, has_struck = struck(case, overtake, at, late=late, key=key)
        if not has_struck:
            break
        mine = [JOBS[0]] if outcome is True else []
        undone += not mine
        theirs = [JOBS[1]] if wrote == [True] else []
        orders = (after(case, *mine, *theirs), after(case, *theirs, *mine))
        assert visible(fake) in orders, (at, outcome)
        if keyed and case.files:
            assert len(mine + theirs) <= 1, (at, "the key is written once")
        recover(Bucket("b", fake), TABLE)
        assert is_clean(fake), (at, outcome)
    assert at > 10
    assert undone or not case.files


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("finished", [False, True], ids=["abandoned", "finished"])
def test_a_worker_that_wakes_after_the_write_leaves_nothing(*, finished: bool, late: bool) -> None:
    """It was stopped at some request of a file that another worker has made meanwhile, or that nobody wants."""
    name = name_of("p=1/", JOBS[0])
    for at in range(1000):
        fake = make_table(CASES[0])
        bucket = Bucket("b", fake)
        publication = ObjectPublication(bucket, TABLE, JOBS[0])
        folder = WriteFolder.of(bucket, publication.folder)

        def end(folder: WriteFolder = folder, publication: ObjectPublication = publication) -> None:
            if finished:
                publication.stage([(name, upload_file(folder, name, fill))])
                publication.publish()
                publication.finish()
            else:
                publication.abandon()

        way = Struck(fake, at, end, after=late)
        late_folder = WriteFolder.of(Bucket("b", way, lambda _: None), publication.folder)
        try:
            upload_file(late_folder, name, fill)
        except OSError:
            assert way.has_struck
        if not way.has_struck:
            publication.abandon()
            break
        assert visible(fake) == ({name} if finished else set()), at
        assert is_clean(fake), at
    assert at > 4


def test_what_a_worker_leaves_that_wakes_and_is_killed_then_the_next_write_removes() -> None:
    fake = make_table(CASES[1])
    bucket = Bucket("b", fake)
    folder = WriteFolder(bucket, TABLE, JOBS[0])
    bucket.begin_upload(folder.file(name_of("p=1/", JOBS[0])))
    bucket.put(folder.note("x"), b"")
    assert write(fake, CASES[1], JOBS[1])
    assert is_clean(fake)


def test_a_driver_whose_process_has_ended_here_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    dead = this_process().rsplit(" ", 1)[0] + " 1"

    def kill(_: FakeBucket) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(settling, "this_process", lambda: dead)
        fake, _, _ = struck(CASES[1], kill, 30, late=False, key="monday")
    assert not is_clean(fake)
    assert write(fake, CASES[1], JOBS[1])
    assert visible(fake) == after(CASES[1], JOBS[1])
    assert is_clean(fake)


def test_two_programs_under_one_key_write_once_and_the_other_is_told() -> None:
    fake = make_table(CASES[1])
    bucket = Bucket("b", fake)
    keys = [ObjectKey(bucket, TABLE, "monday") for _ in range(2)]
    assert [key.begin() for key in keys] == [True, True]
    writes = [ObjectPublication(bucket, TABLE, job, key=key) for job, key in zip(JOBS[:2], keys, strict=True)]
    for each, job in zip(writes, JOBS[:2], strict=True):
        name = name_of("", job)
        each.stage([(name, upload_file(WriteFolder.of(bucket, each.folder), name, fill))])
    writes[0].publish()
    with pytest.raises(WriteError, match="Another program is writing"):
        writes[1].publish()
    with pytest.raises(WriteError, match="Another program is writing"):
        ObjectKey(bucket, TABLE, "monday").begin()
    writes[1].abandon()
    writes[0].finish()
    assert visible(fake) == {*CASES[1].before, name_of("", JOBS[0])}
    assert not ObjectKey(bucket, TABLE, "monday").begin()
    assert is_clean(fake)


def test_a_write_that_is_on_is_left_alone() -> None:
    fake = make_table(CASES[1])
    bucket = Bucket("b", fake)
    publication = ObjectPublication(bucket, TABLE, JOBS[0])
    name = name_of("", JOBS[0])
    size = upload_file(WriteFolder.of(bucket, publication.folder), name, fill)
    assert write(fake, CASES[1], JOBS[1])
    assert recover(bucket, TABLE) == {JOBS[0]}
    publication.stage([(name, size)])
    publication.publish()
    publication.finish()
    assert visible(fake) == after(CASES[1], JOBS[1]) | {name}
    assert is_clean(fake)


def test_a_server_that_does_not_heed_conditions_is_left_to_spark() -> None:
    class Heedless(FakeBucket):
        def send(self, request: Request) -> Response:
            return super().send(Request(request.method, request.key, request.query, {}, request.body))

    fake = Heedless()
    with pytest.raises(UnsuitableBucketError, match="If-None-Match"):
        ObjectPublication(Bucket("b", fake), TABLE, JOBS[0])
    assert not fake.objects


def nothing_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settling, "_take_back", lambda *_: None)


def uploads_not_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bucket, "abort", lambda *_: None)


def no_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settling, "decide", lambda folder, *, done: done)
    monkeypatch.setattr(publication_module, "decide", lambda folder, *, done: done)


def not_looked_at_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ObjectPublication, "_is_done", lambda self: settling.decide(self._write, done=True))


def not_looked_at_the_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    size = Bucket.size
    monkeypatch.setattr(Bucket, "size", lambda self, key: 1 if "/writer." in key else size(self, key))


def lost_answers_taken_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Bucket,
        "put_new",
        lambda self, key, body: (
            self._ask(Request("PUT", key, headers={"if-none-match": "*"}, body=body), differs=True).status
            == 200
        ),
    )


@pytest.mark.parametrize(
    "mutant",
    [
        nothing_undone,
        uploads_not_given_up,
        no_outcome,
        not_looked_at_the_plan,
        not_looked_at_the_sign,
        lost_answers_taken_for_others,
    ],
    ids=lambda mutant: mutant.__name__,
)
def test_the_grid_catches_a_broken_protocol(
    mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    with pytest.raises(AssertionError):
        every_grid(CASES[1])


def every_grid(case: Case) -> None:
    for late in (False, True):
        test_a_lost_request_or_answer_changes_nothing(case, late=late)
        test_a_worker_that_wakes_after_the_write_leaves_nothing(finished=True, late=late)
        for keyed in (False, True):
            for grid in (
                test_a_driver_that_is_killed_at_any_request_leaves_the_old_table_or_the_new_one,
                test_a_driver_that_wakes_after_another_program_has_written_publishes_nothing_or_has_published,
            ):
                grid(case, keyed=keyed, late=late)
