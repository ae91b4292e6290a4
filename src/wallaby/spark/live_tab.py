"""A tab of Spark's UI that leads to the live page, as long as the page is there.

The tab has the page's address and says where its link is: in the driver, by `engine.ui`. The link itself carries the
token, which is not for everybody who may see Spark's UI. Without a UI there is no tab.
"""

from __future__ import annotations

import logging
from html import escape
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from wallaby.catalyst.janino import load_class, new_object

if TYPE_CHECKING:
    from pyspark import SparkContext

_log = logging.getLogger(__name__)


class LiveTab:
    """The tab of one engine, until `remove`."""

    def __init__(self, context: SparkContext, page: str) -> None:
        gateway: Any = context._gateway
        jsc: Any = context._jsc
        self._tab: Any = None
        try:
            made = load_class(gateway.jvm, "wallaby.spark", "LiveTab")
            if jsc.sc().ui().isDefined():
                found = new_object(gateway, gateway.jvm, made, jsc.sc(), tab_text(page))
                found.show()
                self._tab = found
        except (Py4JError, OSError) as error:
            _log.debug("Spark's UI gets no tab: %s", error)

    def remove(self) -> None:
        """Take the tab away."""
        try:
            if self._tab is not None:
                self._tab.remove()
        except (Py4JError, OSError) as error:
            _log.debug("Spark's UI is gone: %s", type(error).__name__)
        self._tab = None


def tab_text(page: str) -> str:
    """The text of the tab, as HTML. It names the address of the page."""
    address = escape(page)
    return (
        '<div class="container-fluid">'
        "<p>The live page shows what the engine of this application does: queries with their stages, TaskManagers, "
        f'losses.</p><p>It is at <a href="{address}" rel="noopener noreferrer">{address}</a>, on the host of the '
        "driver only, and wants a token: open the link that <code>print(engine.ui)</code> shows in the "
        "program.</p></div>"
    )
