"""The failure detector: a missed lease is a suspicion, silence of the store excuses, complaints count."""

from __future__ import annotations

from tests.builders import W

from wallaby.coordinator.detector import EXCUSED_LEASES, LATE_LEASES_MAX, LATE_TIMES, Detector
from wallaby.gcs.interface import WorkerLease
from wallaby.lineage.names import WorkerId

A, B, C = W[:3]
LEASE_MS, UNREACHABLE_MS = 1000, 5000


def lease(
    worker: WorkerId, remaining_ms: int = 500, complaints: tuple[tuple[WorkerId, int], ...] = ()
) -> WorkerLease:
    return WorkerLease(worker, "here:1", remaining_ms, complaints=complaints)


def detector(*, trusted: bool = True) -> Detector:
    """At 10 seconds; the store has been answering for a whole lease period, or not yet."""
    made = Detector(LEASE_MS, UNREACHABLE_MS)
    if trusted:
        made.suspects(10_000 - LEASE_MS, ())
    return made


def test_nobody_is_suspected_whose_lease_is_good() -> None:
    assert detector().suspects(10_000, (lease(A), lease(B, 1))) == ()


def test_whose_lease_has_run_out_is_suspected() -> None:
    assert detector().suspects(10_000, (lease(B, 0), lease(A, -5), lease(C))) == (A, B)


def test_a_lease_that_is_longer_than_any_can_be_is_no_lease() -> None:
    assert detector().suspects(10_000, (lease(A, LEASE_MS), lease(B, LEASE_MS + 1))) == (B,)


def test_a_lease_is_excused_for_some_times_as_long_as_the_coordinator_itself_was_late() -> None:
    made = detector()
    made.woke(9_900, 100)
    made.woke(9_950, 20)
    late = 100 * LATE_TIMES
    assert made.suspects(10_000, (lease(A, 1 - late), lease(B, -late))) == (B,)
    made.woke(9_900 + EXCUSED_LEASES * LEASE_MS + 1, 0)
    assert made.suspects(13_000, (lease(A, -20 * LATE_TIMES),)) == (A,), "the first is long ago"


def test_however_late_the_coordinator_was_a_silent_worker_is_found_in_the_end() -> None:
    made = detector()
    made.woke(9_900, 60_000)
    assert made.suspects(10_000, (lease(A, -LATE_LEASES_MAX * LEASE_MS),)) == (A,)


def test_whoever_wakes_early_excuses_nobody() -> None:
    made = detector()
    made.woke(9_900, -90)
    assert made.suspects(10_000, (lease(A, 0),)) == (A,)


def test_nobody_is_suspected_until_the_store_has_answered_for_a_whole_lease_period() -> None:
    fresh = detector(trusted=False)
    missed = (lease(A, -5),)
    assert fresh.suspects(10_000, missed) == ()
    assert fresh.suspects(10_000 + LEASE_MS - 1, missed) == ()
    assert fresh.suspects(10_000 + LEASE_MS, missed) == (A,)


def test_a_silent_store_makes_no_worker_suspect() -> None:
    made = detector()
    made.store_silent()
    missed = (lease(A, -5),)
    assert made.suspects(20_000, missed) == ()
    assert made.suspects(20_000 + LEASE_MS, missed) == (A,)


def test_a_hint_is_a_suspicion_at_once_and_only_once() -> None:
    made = detector(trusted=False)
    made.hint(A)
    assert made.suspects(10_000, (lease(A), lease(B))) == (A,)
    assert made.suspects(10_001, (lease(A), lease(B))) == ()


def test_a_hint_about_an_unknown_worker_is_nothing() -> None:
    made = detector()
    made.hint(C)
    assert made.suspects(10_000, (lease(A),)) == ()


def test_a_suspect_that_does_not_answer_must_go() -> None:
    assert detector().must_go(A, answered=False, now_ms=10_000)


def test_a_suspect_that_answers_is_excused_for_a_while() -> None:
    made = detector()
    end_ms = 10_000 + EXCUSED_LEASES * LEASE_MS
    assert not made.must_go(A, answered=True, now_ms=10_000)
    assert not made.must_go(A, answered=True, now_ms=end_ms)
    assert made.must_go(A, answered=True, now_ms=end_ms + 1)


def test_an_excuse_begins_anew_once_the_lease_has_been_renewed() -> None:
    made = detector()
    assert not made.must_go(A, answered=True, now_ms=10_000)
    made.suspects(11_000, (lease(A),))
    assert not made.must_go(A, answered=True, now_ms=99_000)


def test_time_in_which_the_store_is_silent_uses_up_no_excuse() -> None:
    """A worker that answers could not have renewed while there was nothing to renew at."""
    made = detector()
    missed = (lease(A, -5),)
    assert made.suspects(10_000, missed) == (A,)
    assert not made.must_go(A, answered=True, now_ms=10_000)
    made.store_silent()
    back_ms = 60_000
    assert made.suspects(back_ms, missed) == ()
    assert made.suspects(back_ms + LEASE_MS, missed) == (A,)
    assert not made.must_go(A, answered=True, now_ms=back_ms + LEASE_MS)


# --- workers that cannot reach each other --------------------------------------------------------------------


def test_without_complaints_nobody_is_given_up() -> None:
    assert detector().unreachable((lease(A), lease(B))) is None
    assert detector().unreachable(()) is None


def test_a_complaint_counts_once_it_is_old_enough() -> None:
    young = lease(A, complaints=((B, UNREACHABLE_MS - 1),))
    old = lease(A, complaints=((B, UNREACHABLE_MS),))
    assert detector().unreachable((young, lease(B))) is None
    assert detector().unreachable((old, lease(B))) == A


def test_the_worker_with_most_complaints_goes() -> None:
    leases = (
        lease(A, complaints=((B, 9000), (C, 9000))),
        lease(B, complaints=((A, 9000),)),
        lease(C, complaints=((A, 9000),)),
    )
    assert detector().unreachable(leases) == A


def test_of_two_that_accuse_each_other_the_later_goes() -> None:
    leases = (lease(A, complaints=((B, 9000),)), lease(B, complaints=((A, 9000),)))
    assert detector().unreachable(leases) == B


def test_the_complaint_of_a_worker_that_is_gone_does_not_count() -> None:
    assert detector().unreachable((lease(A, complaints=((C, 9000),)), lease(B))) is None


def test_a_worker_that_cannot_reach_the_head_goes() -> None:
    made, leases = detector(trusted=False), (lease(A, complaints=((A, 9000),)), lease(B))
    for now_ms in range(1000, 1000 + UNREACHABLE_MS, LEASE_MS):
        made.suspects(now_ms, leases)
        assert made.unreachable(leases) is None, "the head has not watched for long enough"
    made.suspects(1000 + UNREACHABLE_MS, leases)
    assert made.unreachable(leases) == A


def test_nobody_goes_because_the_head_stood_still() -> None:
    made, leases = detector(trusted=False), (lease(A, complaints=((A, 9000),)), lease(B))
    for now_ms in range(1000, 1000 + 2 * UNREACHABLE_MS, LEASE_MS):
        made.suspects(now_ms, ())
    made.suspects(1000 + 2 * UNREACHABLE_MS + 60_000, leases)
    assert made.unreachable(leases) is None
