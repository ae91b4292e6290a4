"""`wallaby history`: look at event logs in a browser, those of any number of engines."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated

import typer

from wallaby.commands.terminal import note, say
from wallaby.errors import InvalidArgumentError

EXAMPLES = """
Examples:

  wallaby history logs/

  wallaby history logs/ --port 8090
"""


def history(
    directory: Annotated[
        Path,
        typer.Argument(
            help="A directory with event logs, also in folders below; spark.wallaby.eventLog.dir."
        ),
    ],
    port: Annotated[
        int, typer.Option(help="The port, on 127.0.0.1; 0 for any free one.", min=0, max=65535)
    ] = 0,
) -> None:
    """Show the queries of all event logs below a directory as pages in a browser, until Ctrl-C."""
    from wallaby.ui.live_page import LivePage
    from wallaby.ui.log_source import LogSource

    if not directory.is_dir():
        raise InvalidArgumentError(
            f"{directory} is not a directory.", fix="Name the directory of event logs."
        )
    source = LogSource(directory)
    page = LivePage(source, port)
    say(page.url)
    note(f"{len(source.queries()):,} event logs below {directory}; Ctrl-C ends this.")
    try:
        threading.Event().wait()
    finally:
        page.close()
