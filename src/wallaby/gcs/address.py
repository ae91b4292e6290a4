"""The address of a Redis server and the credentials for it: the parsed form of `spark.wallaby.gcs.url`.

Three forms: `redis://[user:password@]host[:port][/database]`, the same with `rediss://` for TLS, and
`unix://[user:password@]/path/of/the/socket[?db=database]`. A URL may contain nothing else: Wallaby sets timeouts and
retries, and a parameter that is silently ignored is worse than one that is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from wallaby.errors import InvalidArgumentError

DEFAULT_PORT = 6379
_FORMS = "Write redis://host:port/0, rediss://host:port/0 for TLS, or unix:///path/of/the/socket."


@dataclass(frozen=True, slots=True)
class GcsAddress:
    """A server's address and the credentials for it; it prints without the password."""

    #: The path of a Unix socket; empty for TCP.
    path: str = ""
    host: str = ""
    port: int = DEFAULT_PORT
    database: int = 0
    tls: bool = False
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        if self.path:
            return f"unix://{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'rediss' if self.tls else 'redis'}://{host}:{self.port}/{self.database}"


def parse_address(url: str, *, username: str | None = None, password: str | None = None) -> GcsAddress:
    """Parse a URL. Credentials are given in the URL or separately, not both."""
    try:
        parts = urlsplit(url)
        port = None if "," in parts.netloc else parts.port
    except ValueError as error:
        raise _refused(f"The address of the GCS cannot be read: {error}.") from None
    if (parts.password is not None and password is not None) or (parts.username and username is not None):
        raise _refused(
            "The credentials for the GCS are given twice, in the URL and separately.", fix="Give them once."
        )
    username = unquote(parts.username) if parts.username else username
    password = unquote(parts.password) if parts.password is not None else password
    match parts.scheme:
        case "unix":
            if not parts.path:
                raise _refused("The address of the GCS names no socket.")
            return GcsAddress(
                path=unquote(parts.path),
                database=_database_parameter(parts),
                username=username,
                password=password,
            )
        case "redis" | "rediss":
            if "," in parts.netloc:
                raise _refused(
                    "The address of the GCS names several hosts.", fix=f"Name one primary. {_FORMS}"
                )
            if not parts.hostname or parts.query:
                raise _refused(
                    "The address of the GCS names no host, or has parameters, which Wallaby does not accept."
                )
            return GcsAddress(
                host=parts.hostname,
                port=DEFAULT_PORT if port is None else port,
                database=_database(parts.path.strip("/")),
                tls=parts.scheme == "rediss",
                username=username,
                password=password,
            )
        case "redis+sentinel" | "sentinel" | "redis+cluster" | "cluster":
            raise _refused(
                f"The address of the GCS has the unsupported scheme {parts.scheme!r}; "
                "Wallaby does not follow failovers.",
                fix=f"Give the address of one primary. {_FORMS}",
            )
        case _:
            scheme = f"the unsupported scheme {parts.scheme!r}" if parts.scheme else "no scheme"
            raise _refused(f"The address of the GCS has {scheme}.")


def _database_parameter(parts: SplitResult) -> int:
    """The `db` of a Unix socket's URL, whose path is the socket."""
    parameters = parse_qs(parts.query, keep_blank_values=True)
    if set(parameters) - {"db"}:
        raise _refused("The address of the GCS has parameters, which Wallaby does not accept.")
    return _database(parameters["db"][-1]) if parameters else 0


def _database(text: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        raise _refused(f"{text!r} is not the number of a Redis database.")
    return int(text)


def _refused(what: str, fix: str = _FORMS) -> InvalidArgumentError:
    """The error, which never shows the URL: a password may be in it."""
    return InvalidArgumentError(what, fix=fix, setting="spark.wallaby.gcs.url")
