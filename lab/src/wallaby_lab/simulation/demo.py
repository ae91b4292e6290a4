"""A short guided tour of the simulation: one lost worker step by step, then many seeds."""

from __future__ import annotations

from collections.abc import Callable

from wallaby.lineage.effects import FailPoint
from wallaby_lab.simulation import report
from wallaby_lab.simulation.campaign import run_campaign
from wallaby_lab.simulation.drawn.faults import FaultKind, SimulatedFault
from wallaby_lab.simulation.shrink import tell
from wallaby_lab.simulation.sweep import small_scenario

SEEDS = 400
#: The steps that the tour shows: losses and their consequences.
_TOLD = (
    "***",
    "is gone",
    "starts",
    "freeze",
    "resume:",
    "retrace s",
    "re-read s",
    "submitted",
    "whole result",
    " ends",
)


def run_demo(say: Callable[[str], None], processes: int) -> None:
    """Give the tour, one paragraph at a time."""
    scenario = small_scenario()
    say("Wallaby's protocol at work, in simulation: the real code, a simulated network, disk and store.\n")
    say(report.format_scenario(scenario))
    say("\nOne worker crashes just before it would commit a task:\n")
    result, story = tell(0, scenario, (SimulatedFault(FaultKind.CRASH, FailPoint.COMMIT, 12, after=False),))
    for line in story:
        if any(told in line for told in _TOLD):
            say(line)
    say("\n" + report.format_tally(result.tally))
    say("The result is " + ("right." if result.failure is None else f"WRONG: {result.failure}"))
    say(
        f"\nNow {SEEDS} random queries, each with its own random faults, all invariants checked after every step:\n"
    )
    summary = run_campaign(0, SEEDS, processes)
    say(report.format_summary(summary))
    for seed, what in summary.failures:
        say(f"seed {seed}: {what}")
    say("\nno violation" if not summary.failures else "\nVIOLATIONS")
    say(
        "More: make simulate (100,000 seeds), make mutants (the protocol, broken on purpose), wallaby simulate --help"
    )
