"""The lab's commands, for installations without the lab: each says how to install it.

The lab (simulation, chaos, benchmarks, demo) is a separate distribution, `wallaby-lab`, and the extra `wallaby[lab]`.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint, PackageNotFoundError, version
from typing import Final

import typer

from wallaby.errors import InvalidArgumentError
from wallaby.version import __version__

DISTRIBUTION: Final = "wallaby-lab"
EXTRA: Final = "wallaby[lab]"
#: The name of its entry point, and what it adds.
ENTRY_POINT: Final = "lab"
COMMANDS: Final = ("bench", "chaos", "demo", "differential", "predict", "simulate", "tpcds", "tpch")
_ANYTHING: Final = {"allow_extra_args": True, "ignore_unknown_options": True}


def add_commands(app: typer.Typer, points: Iterable[EntryPoint]) -> None:
    """Let other distributions add their commands; add an explanation for those that are missing."""
    why = f"it is in the extra {EXTRA}, which is not installed"
    for point in points:
        try:
            add = point.load()
        except ImportError as error:
            if point.name != ENTRY_POINT:
                raise
            why = f"it is in the extra {EXTRA}, which cannot be loaded ({error})"
            continue
        add(app)
        if point.name == ENTRY_POINT:
            why = ""
    if why:
        for name in COMMANDS:
            _explain(app, name, why)


def _explain(app: typer.Typer, name: str, why: str) -> None:
    def explain() -> None:
        raise InvalidArgumentError(
            f"The command {name!r} is not available: {why}.", fix=f"Run: pip install '{EXTRA}'"
        )

    app.command(name, hidden=True, add_help_option=False, context_settings=dict(_ANYTHING))(explain)


def installed_version() -> str | None:
    """The version of the lab; None if it is not installed."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return None


def described(installed: str | None) -> tuple[str, bool]:
    """A description of the installed lab, and whether it is in order. The lab is not needed to run queries."""
    if installed is None:
        return f"not installed; {', '.join(COMMANDS)} need it: pip install '{EXTRA}'", True
    if installed != __version__:
        return (
            f"{DISTRIBUTION} {installed} does not fit wallaby {__version__}: pip install '{EXTRA}=={__version__}'",
            False,
        )
    return f"{DISTRIBUTION} {installed}", True
