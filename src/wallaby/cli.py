"""The command line, `wallaby`: the list of its commands, and how they end.

Other distributions add commands by an entry point of the group `wallaby.commands`, a function that takes the
application. The lab, which tests and measures, does so; without it, its commands say how to install it.

Exit codes: 0 success; 1 failure (a query failed, a check found something); 2 the command, its arguments
or a file that it names were not understood; 130 it was interrupted (Ctrl-C).
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated

import typer
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from wallaby.commands import connect, doctor, history, report, sql
from wallaby.commands.lab import add_commands
from wallaby.commands.terminal import note, say
from wallaby.errors import InvalidArgumentError, WallabyError
from wallaby.version import __version__

_JAVA_CLASS = re.compile(r"^(: )?([\w$]+\.)+[\w$]+: ")
_EXIT_CODES = """
Exit codes: 0 success; 1 failure; 2 the command was not understood; 130 interrupted.
"""


def make_app(points: Iterable[EntryPoint]) -> typer.Typer:
    """Make the application with the commands of these entry points, and explanations for those that are missing."""
    made = typer.Typer(
        name="wallaby",
        help="A pipelined query engine on Spark that survives lost workers.",
        epilog=_EXIT_CODES,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    made.callback()(_root)
    made.command(epilog=sql.EXAMPLES)(sql.sql)
    made.command(epilog=sql.EXPLAIN_EXAMPLES)(sql.explain)
    made.command(epilog=connect.EXAMPLES)(connect.connect)
    made.command(epilog=report.EXAMPLES)(report.report)
    made.command(epilog=history.EXAMPLES)(history.history)
    made.command(epilog=doctor.EXAMPLES)(doctor.doctor)
    add_commands(made, points)
    return made


def _version(wanted: bool) -> None:
    if wanted:
        say(f"wallaby {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """A pipelined query engine that survives lost workers."""


app = make_app(entry_points(group="wallaby.commands"))


def main() -> None:
    """Run the command line; errors of Wallaby and of Spark are printed as one line, without a traceback."""
    logging.getLogger().addFilter(_is_not_an_interrupt)
    try:
        app(standalone_mode=True)
    except InvalidArgumentError as error:
        note(f"wallaby: {error}")
        sys.exit(2)
    except WallabyError as error:
        note(f"wallaby: {error}")
        sys.exit(1)
    except (PySparkException, Py4JJavaError) as error:
        note(f"wallaby: {_first_line(error)}")
        sys.exit(1)


def _is_not_an_interrupt(record: logging.LogRecord) -> bool:
    """A log filter: Py4J logs a Ctrl-C during a call with its traceback, although it also raises it."""
    return record.exc_info is None or record.exc_info[0] is not KeyboardInterrupt


def _first_line(error: PySparkException | Py4JJavaError) -> str:
    """The first line of Spark's message, without the plan and the stack that follow.

    PySpark leaves some errors of the JVM as they are. Those begin with a line of Py4J's, and then name a Java class.
    """
    lines = [line.strip().rstrip(";") for line in str(error).splitlines() if line.strip()]
    if isinstance(error, Py4JJavaError):
        lines = [_JAVA_CLASS.sub("", line) for line in lines[1:]]
    return lines[0] if lines else type(error).__name__
