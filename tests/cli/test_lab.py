"""The command line without the lab, with one that fits, and with one that does not."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint

import pytest
import typer
from typer.testing import CliRunner

from wallaby import cli
from wallaby.commands import doctor, lab
from wallaby.version import __version__

BROKEN = EntryPoint("lab", "wallaby_of_nobody:add_to", "wallaby.commands")


def names(app: typer.Typer) -> set[str]:
    """The commands that the help lists."""
    group = typer.main.get_command(app)
    return {name for name, command in group.commands.items() if not command.hidden}  # type: ignore[attr-defined]


def said(app: typer.Typer, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code of the whole program with this application."""
    monkeypatch.setattr(cli, "app", app)
    monkeypatch.setattr(sys, "argv", ["wallaby", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_the_lab_adds_exactly_the_commands_that_are_missing_without_it() -> None:
    assert names(cli.app) - names(cli.make_app(())) == set(lab.COMMANDS)


@pytest.mark.parametrize("more", [[], ["queries", "data/sf1", "--engine", "spark"], ["--help"]])
@pytest.mark.parametrize("command", lab.COMMANDS)
def test_without_the_lab_its_commands_name_the_extra(
    command: str, more: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(cli.make_app(()), [command, *more], monkeypatch) == 2
    told = capsys.readouterr().err
    assert f"The command '{command}' is not available: it is in the extra wallaby[lab]" in told
    assert "pip install 'wallaby[lab]'" in told
    assert told.startswith("wallaby: ")
    assert told.count("\n") == 1, "one line"


def test_a_lab_that_cannot_be_loaded_leaves_the_other_commands_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    app = cli.make_app((BROKEN,))
    assert CliRunner().invoke(app, ["report", "--help"]).exit_code == 0
    assert said(app, ["demo"], monkeypatch) == 2
    assert "cannot be loaded (No module named 'wallaby_of_nobody')" in capsys.readouterr().err


def test_a_command_that_nobody_has_is_not_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(cli.make_app(()), ["wombat"], monkeypatch) == 2


@pytest.mark.parametrize(
    ("version", "told", "code"),
    [
        (None, "lab: not installed", 0),
        (__version__, f"lab: wallaby-lab {__version__}", 0),
        ("0.0.7", f"lab: wallaby-lab 0.0.7 does not fit wallaby {__version__}", 1),
    ],
)
def test_the_doctor_says_whether_the_lab_is_there_and_fits(
    version: str | None, told: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "installed_version", lambda: version)
    monkeypatch.setattr(doctor, "_leftovers", lambda *_args, **_named: "none")
    ran = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(cli.app, ["doctor", "--no-spark"])
    assert told in ran.output
    assert ran.exit_code == code
