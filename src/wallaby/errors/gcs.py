"""Errors of the control store (GCS): it does not answer, refuses us, or has lost what it held."""

from __future__ import annotations

from wallaby.errors.base import WallabyError


class GcsError(WallabyError):
    """The control store did not do what was asked; nothing is known to be lost."""

    condition = "WALLABY_GCS"


class GcsUnavailableError(GcsError):
    """No answer in time, or the connection broke: the action may or may not have been applied."""

    condition = "WALLABY_GCS_UNAVAILABLE"
    retryable = True


class GcsUnreachableError(GcsError):
    """Nothing at the given address speaks Redis."""

    condition = "WALLABY_GCS_UNREACHABLE"


class GcsAuthenticationError(GcsError):
    """The store wants a password or refused the one it was given."""

    condition = "WALLABY_GCS_AUTHENTICATION"


class GcsVersionError(GcsError):
    """The store is too old for the scripts that we run in it."""

    condition = "WALLABY_GCS_VERSION"


class GcsLostError(GcsError):
    """The store was restarted or lost data: what it holds can no longer be trusted."""

    condition = "WALLABY_GCS_LOST"
