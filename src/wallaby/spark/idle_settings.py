"""Warn, when an engine attaches, of settings that have no effect beside the others.

They are no errors, because one configuration often serves several engines, of which only some use a Redis of their own
or a durable store.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from wallaby.config.registry import PREFIX, SETTINGS
from wallaby.config.settings import Settings, field_of
from wallaby.lineage.tolerance import Tolerance

_log = logging.getLogger(__name__)


def idle_settings(settings: Settings, tolerance: Tolerance) -> Iterator[tuple[str, str]]:
    """Yield the keys that differ from their defaults without having an effect, each with the reason."""
    policy = settings.fault_tolerance_policy
    reasons = (
        (("gcs.password", "gcs.tlsCa"), bool(settings.gcs_url), "gcs.url is not set"),
        (
            ("faultTolerance.store", "faultTolerance.abandonedAfter"),
            tolerance.uses_durable_store,
            f"faultTolerance.policy = {policy} uses no durable store",
        ),
        (
            ("faultTolerance.checkpoint",),
            tolerance.checkpoints,
            f"faultTolerance.policy = {policy} saves no states",
        ),
        (("chaos.directory", "chaos.faults"), settings.chaos_enabled, "chaos.enabled is false"),
    )
    defaults = {setting.key: setting.default for setting in SETTINGS}
    for keys, has_effect, why in reasons:
        for key in keys:
            if not has_effect and getattr(settings, field_of(key)) != defaults[key]:
                yield PREFIX + key, PREFIX + why


def warn_of_idle(settings: Settings, tolerance: Tolerance) -> None:
    """Say which settings have no effect."""
    for key, why in idle_settings(settings, tolerance):
        _log.warning("%s has no effect, because %s.", key, why)
