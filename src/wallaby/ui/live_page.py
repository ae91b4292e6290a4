"""The live page of an engine, as users hold it: a link that a notebook shows, and a server behind it."""

from __future__ import annotations

import sys
from html import escape
from typing import Final

from wallaby.errors import ConfigurationError
from wallaby.ui.pages import Pages
from wallaby.ui.server import PageServer
from wallaby.ui.source import Source

_KEY: Final = "spark.wallaby.ui.port"


class LivePage:
    """A page about an engine. It ends with the engine.

    Example:
        >>> engine.ui
        http://127.0.0.1:41235/x8Wk…/?token=…
    """

    def __init__(self, source: Source, port: int = 0) -> None:
        """Start it.

        Raises:
            ConfigurationError: the port is taken.
        """
        try:
            self._server = PageServer(Pages(source), port)
        except OSError as error:
            raise ConfigurationError(
                f"{_KEY} = {port}: {error.strerror}.", fix="Choose another port, or 0 for any.", key=_KEY
            ) from error

    @property
    def url(self) -> str:
        """The address with the token. Anyone on this host who has it can see the page."""
        return self._server.url

    @property
    def address(self) -> str:
        """The address without the token."""
        return self._server.address

    @property
    def port(self) -> int:
        """The port, on 127.0.0.1."""
        return self._server.port

    @property
    def token(self) -> str:
        """The token, for `Authorization: Bearer` in requests of Prometheus."""
        return self._server.token

    def close(self) -> None:
        """End the server."""
        self._server.close()

    def __repr__(self) -> str:
        return self.url

    def _repr_html_(self) -> str:
        return f'<a href="{escape(self.url)}" target="_blank" rel="noopener">live page</a>'


def in_notebook() -> bool:
    """Does a notebook run this program?"""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"
