"""Evaluate a soak (is memory flat, is anything left behind, how did each fault end) and write its page."""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import Final

from wallaby_lab.chaos.run import RunVerdict
from wallaby_lab.chaos.soak import NOTHING, Soaked

#: How much larger the median of the last third may be than that of the first, for memory to count as flat.
GROWTH_BYTES: Final = 64 << 20
GROWTH_SHARE: Final = 0.10
#: With fewer rounds there is no trend.
ROUNDS_MIN: Final = 9
#: The keys that may exist when no query runs: those about workers.
KEYS_MAX: Final = 5
THREADS_MORE: Final = 8
FILES_MORE: Final = 40


def problems(found: Soaked) -> list[str]:
    """Everything that went wrong in a soak; empty if all promises were kept."""
    said = [f"q{each.query}, {each.fault}: {each.verdict}. {each.detail}" for each in found.bad]
    struck = {each.fault for each in found.rounds if each.struck}
    tried = Counter(each.fault for each in found.rounds if each.fault != NOTHING)
    said += [
        f"{fault}: never struck, in {count} rounds" for fault, count in tried.items() if fault not in struck
    ]
    return said + leaks(found)


def leaks(found: Soaked) -> list[str]:
    """Figures that grow, or that are not zero when no query runs."""
    said = []
    for memory in dict.fromkeys(each.memory for each in found.rounds):
        said += _growth(
            found.under(memory), "worker_bytes_max", f" with a budget of {memory}" if memory else ""
        )
    said += _growth(found, "driver_bytes")
    for name, more in (("driver_threads", THREADS_MORE), ("driver_files", FILES_MORE)):
        first, last = thirds(found, name)
        if last > first + more:
            said.append(f"{name} grew from {first} to {last}")
    for at, each in enumerate(found.rounds):
        left = each.measured
        if left["keys"] > KEYS_MAX or left["queries"]:
            said.append(
                f"round {at}: {left['keys']} keys and {left['queries']} queries are left in the store"
            )
        if left["redis_servers"] > 1:
            said.append(f"round {at}: {left['redis_servers']} Redis servers run")
        if left["scratch_folders"] > left["workers"]:
            said.append(f"round {at}: {left['scratch_folders']} scratch folders of {left['workers']} workers")
    return said


def _growth(found: Soaked, name: str, where: str = "") -> list[str]:
    first, last = thirds(found, name)
    if last <= first * (1 + GROWTH_SHARE) + GROWTH_BYTES:
        return []
    return [f"{name} grew from {first >> 20} to {last >> 20} MiB{where}"]


def thirds(found: Soaked, name: str) -> tuple[int, int]:
    """The medians of a figure in the first and in the last third of the rounds; equal if there are too few rounds."""
    values = [each.measured[name] for each in found.rounds]
    if len(values) < ROUNDS_MIN:
        middle = int(median(values)) if values else 0
        return middle, middle
    size = len(values) // 3
    return int(median(values[:size])), int(median(values[-size:]))


def page(found: Soaked, commit: str, of: dict[str, object]) -> str:
    """The page docs/results/soak.md."""
    minutes = found.seconds / 60
    wrong = problems(found)
    lines = [
        "# A soak",
        "",
        "`make soak` writes this page after every round; [reports/soak.json](../../reports/soak.json) has all rounds.",
        "A round is a TPC-H query and a fault, drawn at random; once every fault has come, TaskManagers get the next",
        "budget. After a round the engine has to be as good as new, and everything that could leak is measured.",
        "",
        f"{len(found.rounds)} rounds in {minutes:.1f} minutes, commit {commit[:12]}:",
        ", ".join(f"{name} {value}" for name, value in of.items() if value) + ".",
        "",
        "Everything was as it must be." if not wrong else "What was not as it must be:",
        *(f"- {line}" for line in wrong),
        "",
        "| fault | rounds | struck | answered as Spark does | ended as it must | not reached | bad |",
        "|---|---|---|---|---|---|---|",
    ]
    for fault in sorted({each.fault for each in found.rounds}):
        rounds = [each for each in found.rounds if each.fault == fault]
        count = Counter(RunVerdict(each.verdict) for each in rounds)
        bad = sum(number for verdict, number in count.items() if not verdict.is_good)
        lines.append(
            f"| {fault} | {len(rounds)} | {sum(bool(each.struck) for each in rounds)} | {count[RunVerdict.EQUAL]} "
            f"| {count[RunVerdict.FAILED_AS_IT_MUST]} | {count[RunVerdict.NOT_REACHED]} | {bad} |"
        )
    lines += ["", "| budget | rounds | largest TaskManager after a round, MiB | bad |", "|---|---|---|---|"]
    for memory in dict.fromkeys(each.memory for each in found.rounds):
        rounds = found.under(memory).rounds
        largest = max(each.measured["worker_bytes_max"] for each in rounds) >> 20
        bad = sum(not RunVerdict(each.verdict).is_good for each in rounds)
        lines.append(f"| {memory} | {len(rounds)} | {largest} | {bad} |")
    lines += ["", "| figure, after a round | first third | last third | largest |", "|---|---|---|---|"]
    for name in found.rounds[0].measured if found.rounds else ():
        first, last = thirds(found, name)
        largest = max(each.measured[name] for each in found.rounds)
        lines.append(f"| {name} | {first:,} | {last:,} | {largest:,} |")
    return "\n".join([*lines, ""])
