"""Errors of the control store (GCS): it does not answer, refuses a call, or has lost data."""

from __future__ import annotations

from wallaby.errors.base import WallabyError


class GcsError(WallabyError):
    """The control store did not perform an action; as far as is known, nothing is lost."""

    condition = "WALLABY_GCS"


class GcsUnavailableError(GcsError):
    """The control store did not answer in time: the action may or may not have been applied."""

    condition = "WALLABY_GCS_UNAVAILABLE"
    retryable = True


class GcsUnreachableError(GcsError):
    """No Redis answers at the given address."""

    condition = "WALLABY_GCS_UNREACHABLE"


class GcsAuthenticationError(GcsError):
    """The Redis requires a password, or refused the given one."""

    condition = "WALLABY_GCS_AUTHENTICATION"


class GcsVersionError(GcsError):
    """The Redis is too old for Wallaby's scripts."""

    condition = "WALLABY_GCS_VERSION"


class GcsLostError(GcsError):
    """The control store was restarted or lost data: what it holds can no longer be trusted."""

    condition = "WALLABY_GCS_LOST"
