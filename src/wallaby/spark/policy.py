"""Which fault-tolerance policy the settings of an engine name."""

from __future__ import annotations

from dataclasses import replace

from wallaby.config.settings import Settings, contradiction
from wallaby.lineage.tolerance import NONE, Tolerance, tolerance_of


def chosen_tolerance(settings: Settings) -> Tolerance:
    """The parts of fault tolerance that the settings name, if they do not contradict each other."""
    policy = f"faultTolerance.policy={settings.fault_tolerance_policy}"
    chosen = tolerance_of(settings.fault_tolerance_policy)
    if not settings.fault_tolerance_enabled:
        if "faultTolerance.policy" in settings.given:
            raise contradiction(
                "faultTolerance.enabled=false", policy, "without fault tolerance there is no policy"
            )
        chosen = NONE
    if chosen.staged and settings.execution_mode == "pipelined" and "execution.mode" in settings.given:
        why = "under it, a stage starts only when its inputs are complete"
        raise contradiction("execution.mode=pipelined", policy, why)
    return replace(chosen, staged=chosen.staged or settings.execution_mode == "stagewise")
