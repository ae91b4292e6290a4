"""`wallaby report`: turn an event log into one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wallaby.commands.terminal import open_for_writing, say

EXAMPLES = """
Examples:

  wallaby report logs/20260813T101500-q-1f0c.jsonl

  wallaby report logs/20260813T101500-q-1f0c.jsonl -o why-so-slow.html
"""


def report(
    log: Annotated[
        Path, typer.Argument(help="An event log; spark.wallaby.eventLog.dir names their directory.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The page; by default beside the log, as .html.")
    ] = None,
) -> None:
    """Turn a query's event log into one self-contained HTML page, also for a failed query."""
    from wallaby.observe.log_reading import read_log
    from wallaby.observe.page import make_page

    page = make_page(read_log(log))
    target = output or log.with_suffix(".html")
    with open_for_writing(target) as file:
        file.write(page)
    say(str(target))
