"""What the API server answers instead of an object: a Status, with its code and reason."""

from __future__ import annotations

from wallaby.errors import WallabyError


class StatusError(WallabyError):
    """A request that is refused, with the code and the reason that Kubernetes gives."""

    condition = "WALLABY_LAB_KUBERNETES"

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code, self.reason, self.message = code, reason, message

    def as_status(self) -> dict[str, object]:
        """The body of the answer."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
