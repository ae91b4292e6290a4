"""The reference pages that are made from code: API, errors, commands and events. `tools/write_docs.py` writes them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from enum import Enum
from textwrap import dedent
from typing import Any, Literal, get_args, get_origin, get_type_hints

import typer

import wallaby
from wallaby.cli import app
from wallaby.errors import WallabyError
from wallaby.observe import event

_API = """# API

<!-- Generated from src/wallaby/__init__.py by `make pages`. -->

Import these names from `wallaby`. [What is stable](../stability.md) says which of them, and which of their attributes,
stay as they are. The texts below come from docstrings, so `help(wallaby.attach)` shows the same.
"""
_RECORDS = "The figures and events of a run. Read fields by name; later versions may add some."
#: The parts of the page: a title, a sentence, and the names in it.
_PARTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("Begin and end", "", ("attach", "enable", "disable", "serve", "explain_last")),
    (
        "Engine",
        "`Engine.settings` is a `wallaby.Settings`; its fields are the keys of the [settings](../configuration.md).",
        ("Engine", "ConnectServer", "LivePage"),
    ),
    ("Result", "", ("Result",)),
)
_FIELD = re.compile(r"^    (\w+): ([^=]+?)(?: = .*)?$")
_ELSEWHERE = frozenset({"Settings", "__version__", "errors"})


def api() -> str:
    """The public names: mkdocstrings fills in functions and classes, records are tables."""
    first = {name for _, _, names in _PARTS for name in names}
    others = tuple(name for name in sorted(wallaby.__all__) if name not in first | _ELSEWHERE)
    lines = [_API]
    for title, sentence, names in (*_PARTS, ("Records", _RECORDS, others)):
        lines += [f"## {title}", ""] + ([sentence, ""] if sentence else [])
        for name in names:
            known = getattr(wallaby, name)
            is_record = isinstance(known, type) and is_dataclass(known)
            lines += record_lines(known) if is_record else [f"::: {known.__module__}.{name}", ""]
    lines += ["## Errors", "", "All errors are in `wallaby.errors`: see [errors](errors.md).", ""]
    return "\n".join(lines)


def record_lines(kind: type) -> list[str]:
    """A record with its public fields, each with the comment above it, and its properties.

    Raises:
        ValueError: a public field has no comment of its own.
    """
    lines = [
        f"### {kind.__name__}",
        "",
        inspect.getdoc(kind) or "",
        "",
        "| field | type | meaning |",
        "|---|---|---|",
    ]
    types, said = get_type_hints(kind), []
    for line in dedent(inspect.getsource(kind)).splitlines():
        if line.startswith("    #: "):
            said.append(line.removeprefix("    #: "))
        elif found := _FIELD.match(line):
            if not found[1].startswith("_"):
                lines.append(_field(kind, found[1], _shown(types[found[1]], found[2]), " ".join(said)))
            said = []
    for name, value in vars(kind).items():
        if isinstance(value, property):
            lines.append(f"| `{name}` | | {inspect.getdoc(value)} |")
        elif inspect.isfunction(value) and not name.startswith("_"):
            lines.append(f"| `{name}()` | | {inspect.getdoc(value)} |")
    return [*lines, ""]


def _field(kind: type, name: str, shown: str, meaning: str) -> str:
    if not meaning:
        raise ValueError(f"{kind.__name__}.{name} has no comment: say what it means, in a line above it")
    return f"| `{name}` | `{shown}` | {meaning} |"


def _shown(type_: Any, written: str) -> str:
    """A type as the source has it; the words behind a name for some words."""
    words = ", ".join(f'"{word}"' for word in get_args(type_)) if get_origin(type_) is Literal else ""
    return f"Literal[{words}]" if words else written.replace("|", "\\|")


_ERRORS = """# Errors

<!-- Generated from src/wallaby/errors by `make pages`. -->

Every error of Wallaby is a `wallaby.errors.WallabyError`, which is a `PySparkException`. It has:

| attribute | meaning |
|---|---|
| `getCondition()` | the name of the condition, as with Spark's own errors |
| `getSqlState()` | the SQLSTATE, where Spark has one for the condition |
| `what`, `fix` | what happened, and what to do about it; the message is made of both |
| `fields` | details for programs: the operator, the stage, the setting, … |
| `retryable` | whether the same call may succeed if it is repeated |

[Recovering from errors](../guides/errors.md) says what to do about those that users meet.
"""


_OF_DATA = """These have the condition that Spark has for them, and are subclasses of the class that PySpark raises. By
default, Spark runs a query that meets one up to the error, and the error is Spark's own ([what is the
same](../using.md#what-is-the-same))."""


def error_page() -> str:
    """Every class of error, with its condition."""
    ours: list[type[WallabyError]] = []
    data: list[type[WallabyError]] = []
    for kind in _subclasses(WallabyError):
        if kind.__module__.startswith("wallaby.errors.") and not kind.__name__.startswith("_"):
            (data if kind.__module__ == "wallaby.errors.values" else ours).append(kind)
    lines = [_ERRORS, "## Errors of the engine", "", "| class | condition | meaning |", "|---|---|---|"]
    lines += map(_error, sorted(ours, key=lambda kind: kind.__name__))
    lines += [
        "",
        "## Errors of the data",
        "",
        _OF_DATA,
        "",
        "| class | condition | meaning |",
        "|---|---|---|",
    ]
    lines += map(_error, sorted(data, key=lambda kind: kind.__name__))
    return "\n".join(lines) + "\n"


def _subclasses(kind: type[WallabyError]) -> list[type[WallabyError]]:
    found = {kind: None}
    for child in kind.__subclasses__():
        found |= dict.fromkeys(_subclasses(child))
    return list(found)


def _error(kind: type[WallabyError]) -> str:
    meaning = (inspect.getdoc(kind) or "").partition("\n\n")[0].replace("\n", " ")
    again = " May be retried." if kind.retryable else ""
    return f"| `{kind.__name__}` | `{kind.condition}` | {meaning}{again} |"


_COMMANDS = """# Commands

<!-- Generated from src/wallaby/commands and lab/src/wallaby_lab/commands by `make pages`. -->

`wallaby COMMAND --help` shows the same. Commands exit with 0 on success, 1 on failure, 2 if the command was not
understood, and 130 if it was interrupted. Answers go to standard output, everything else to standard error.

[What is stable](../stability.md) lists the commands that scripts may rely on. Those marked *lab* come with the extra
`wallaby[lab]`.
"""


def commands() -> str:
    """Every command with its arguments and options."""
    lines = [_COMMANDS]
    for name, command in _leaves("wallaby", typer.main.get_command(app)):
        lab = " *(lab)*" if command.callback.__module__.startswith("wallaby_lab") else ""
        lines += [f"## {name}", "", f"{_paragraphs(command.help)}{lab}", ""]
        taken = [parameter for parameter in command.params if not parameter.hidden]
        if taken:
            lines += [
                "| argument or option | default | meaning |",
                "|---|---|---|",
                *map(_parameter, taken),
                "",
            ]
        if command.epilog:
            lines += ["```text", *_examples(command.epilog), "```", ""]
    return "\n".join(lines).rstrip() + "\n"


def _leaves(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """The commands that do something, with what is typed to run them."""
    below: dict[str, Any] = getattr(command, "commands", {})
    if not below:
        yield name, command
    for key, child in below.items():
        yield from _leaves(f"{name} {key}", child)


def _examples(epilog: str) -> list[str]:
    """The lines below "Examples:", without what follows them."""
    lines = inspect.cleandoc(epilog.partition("Examples:")[2].partition("Exit codes")[0]).splitlines()
    return [line.strip() for line in lines if line.strip()]


def _paragraphs(text: str | None) -> str:
    return " ".join(inspect.cleandoc(text or "").split())


def _parameter(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        names = f"`{parameter.name.rstrip('_').upper()}`"
    else:
        names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    default = "required" if parameter.required else _default(parameter.default)
    return (
        f"| {names} | {default} | {_choices(parameter)}{(parameter.help or '').replace('|', chr(92) + '|')} |"
    )


def _choices(parameter: Any) -> str:
    kind = parameter.type_descriptor.annotation
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "One of " + ", ".join(f"`{member.value}`" for member in kind) + ". "
    return ""


def _default(value: Any) -> str:
    shown = value.value if isinstance(value, Enum) else value
    if shown is None or shown == "" or shown is False or shown == []:
        return ""
    if shown is True:
        return "on"
    if isinstance(shown, list | tuple):
        return ", ".join(f"`{each}`" for each in shown)
    return f"`{shown}`"


_EVENTS = """# Events

<!-- Generated from src/wallaby/observe/event.py by `make pages`. -->

`result.events` has these events, and so has the log that a query writes with `spark.wallaby.eventLog.dir`.
[Observability](../guides/observability.md) says how to look at them; a program may also read them as they are.
"""


def events() -> str:
    """The format of the event log, from the docstring of its module."""
    blocks = inspect.cleandoc(event.__doc__ or "").split("\n\n")
    (place,) = (number for number, block in enumerate(blocks) if block.startswith("kind "))
    rows: list[list[str]] = []
    for line in blocks[place].splitlines()[2:]:
        kind, source, more = (cell.strip() for cell in line.split("|", 2))
        if kind:
            rows.append([kind, source, more])
        else:
            rows[-1][2] += f" {more}"
    assert {kind for kind, _, _ in rows} == {kind.value for kind in event.EventKind}
    table = [f"| `{kind}` | {source} | {more} |" for kind, source, more in rows]
    parts = [
        _EVENTS.rstrip(),
        *blocks[:place],
        "\n".join(["| kind | from | fields |", "|---|---|---|", *table]),
        *blocks[place + 1 :],
    ]
    return "\n\n".join(parts) + "\n"
