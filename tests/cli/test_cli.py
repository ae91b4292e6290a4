"""The command line: its help, what it refuses and with which exit code, and errors of one line. No Spark."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from typer.testing import CliRunner, Result

from wallaby import cli
from wallaby.commands import rows, session, sql
from wallaby.commands.java import JavaError, find_java, java_major
from wallaby.errors import GcsError, InvalidArgumentError
from wallaby.spark import cluster
from wallaby.worker.scratch import make_scratch
from wallaby_lab.commands.simulate import SIMULATED
from wallaby_lab.compare import same

LOGS = Path(__file__).parents[1] / "observe" / "logs"
COMMANDS = (
    ("sql",),
    ("explain",),
    ("report",),
    ("bench", "blocks"),
    ("bench", "overhead"),
    ("bench", "queries"),
    ("bench", "recovery"),
    ("bench", "scaling"),
    ("chaos",),
    ("demo",),
    ("doctor",),
    ("simulate",),
    ("tpch", "exchange"),
    ("tpch", "generate"),
    ("tpch", "query"),
    ("tpch", "verify"),
)


def run(*arguments: str, columns: int = 200) -> Result:
    return CliRunner(env={"COLUMNS": str(columns), "TERM": "dumb", "NO_COLOR": "1"}).invoke(
        cli.app, arguments
    )


def exits(arguments: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code of the whole program."""
    monkeypatch.setattr(sys, "argv", ["wallaby", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_the_help_lists_every_command_and_the_exit_codes() -> None:
    said = run("--help")
    assert said.exit_code == 0
    for command in {name[0] for name in COMMANDS}:
        assert command in said.output
    assert "Exit codes" in said.output


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_examples(command: tuple[str, ...]) -> None:
    said = run(*command, "--help")
    assert said.exit_code == 0
    assert "Examples:" in said.output
    assert f"wallaby {' '.join(command)}" in said.output


def test_the_version_is_printed() -> None:
    assert re.fullmatch(r"wallaby \d+\.\d+\.\d+\n", run("--version").output)


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["sql"],
        ["sql", "select 1", "--format", "xml"],
        ["sql", "select 1", "--workers", "0"],
        ["sql", " ; "],
        ["sql", "select 1", "--table", "t"],
        ["sql", "select 1", "--table", "1t=here"],
        ["sql", "select 1", "--table", "t=nowhere.parquet"],
        ["sql", "select 1", "--conf", "workers=3"],
        ["sql", "select 1", "--conf", "spark.wallaby.memry=1g"],
        ["sql", "select 1", "--conf", "spark.wallaby.memory=lots"],
        ["sql", "select 1", "-o", "answer.xlsx"],
        ["sql", "select 1", "-o", "nowhere/answer.csv"],
        ["explain", "select 1", "--table", "t=nowhere.parquet"],
        ["report"],
        ["report", "nowhere.jsonl"],
        ["tpch", "generate", "here", "--scale", "0"],
        ["tpch", "query", "23"],
        ["demo", "--query", "23"],
        ["simulate", "--seed", "1", "--sweep"],
        ["simulate", "--generated", "--interleavings"],
        ["simulate", "--generated", "--module", "wallaby.session"],
        ["simulate", "--generated", "--share", "0"],
        ["simulate", "--module", "wallaby.lineage.recoverable"],
        ["simulate", "--policy", "restart"],
        ["simulate", "--policy", "raid"],
    ],
    ids=" ".join,
)
def test_what_is_not_understood_ends_with_two(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert exits(arguments, monkeypatch) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err
    assert "Traceback" not in captured.err


class _JvmError(Py4JJavaError):  # type: ignore[misc] # Py4J has no types
    """An error that PySpark left as it was."""

    def __init__(self) -> None:
        pass

    def __str__(self) -> str:
        return (
            "An error occurred while calling o265.load.\n"
            ": org.apache.spark.SparkException: [FAILED_READ_FILE] There is no footer.\n\tat org.apache.X\n"
        )


def test_an_error_of_the_jvm_is_its_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(**_: object) -> None:
        raise _JvmError

    monkeypatch.setattr(cli, "app", fails)
    assert exits([], monkeypatch) == 1
    assert capsys.readouterr().err == "wallaby: [FAILED_READ_FILE] There is no footer.\n"


def test_our_errors_and_sparks_are_one_line_and_end_with_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raised: list[Exception] = [
        GcsError("The store is gone.", fix="Start it."),
        AnalysisException(
            message="[TABLE_OR_VIEW_NOT_FOUND] The table or view `t` cannot be found.\nMore\nand more"
        ),
    ]
    for error in raised:

        def fails(error: Exception = error, **_: object) -> None:
            raise error

        monkeypatch.setattr(cli, "app", fails)
        assert exits([], monkeypatch) == 1
        assert capsys.readouterr().err.count("\n") == 1


def test_a_report_is_written_beside_its_log_or_where_it_is_wanted(tmp_path: Path) -> None:
    log = tmp_path / "q.jsonl"
    log.write_bytes((LOGS / "failure.jsonl").read_bytes())
    said = run("report", str(log))
    assert (said.exit_code, said.output.strip()) == (0, str(tmp_path / "q.html"))
    assert (tmp_path / "q.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert run("report", str(log), "-o", str(tmp_path / "other.html")).exit_code == 0
    assert (tmp_path / "other.html").exists()


def test_a_report_of_no_log_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "letter.txt").write_text("Dear all,\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert exits(["report", "letter.txt"], monkeypatch) == 2
    assert "letter.txt is not an event log" in capsys.readouterr().err


@pytest.mark.redis
def test_the_doctor_tells_good_from_bad_and_cleans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    assert run("doctor", "--no-spark").exit_code == 0
    left = make_scratch(tmp_path)
    name = re.sub(r"-\d+-\d+-(\w+)$", r"-999999999-1-\1", left.name)  # of a process that is not there
    left = left.rename(tmp_path / name)
    said = run("doctor", "--no-spark")
    assert said.exit_code == 1
    assert "doctor --clean" in said.output
    assert run("doctor", "--no-spark", "--clean").exit_code == 0
    assert not left.exists()
    assert run("doctor", "--no-spark", "--gcs-url", "redis://127.0.0.1:1").exit_code == 1


def test_a_campaign_that_was_cut_short_is_resumed(tmp_path: Path) -> None:
    def simulate(seeds: int, name: str, commit: str = "abc") -> dict[str, object]:
        more = ("--processes", "1", "--save", str(tmp_path / name), "--commit", commit, "--resume")
        run("simulate", "--seeds", str(seeds), *more)
        said: dict[str, object] = json.loads((tmp_path / name).read_text(encoding="utf-8"))
        return {key: value for key, value in said.items() if key != "seconds"}

    simulate(2, "resumed.json")
    assert simulate(5, "resumed.json") == simulate(5, "whole.json")
    other = run(
        "simulate", "--seeds", "6", "--save", str(tmp_path / "whole.json"), "--commit", "d", "--resume"
    )
    assert other.exit_code != 0
    assert simulate(5, "whole.json")["seeds"] == 5, "it was not touched"


def test_seeds_are_simulated_under_every_policy(tmp_path: Path) -> None:
    said = run(
        "simulate", "--policy", "all", "--seeds", "3", "--processes", "1", "--save", str(tmp_path / "s.json")
    )
    assert said.exit_code == 0, said.output
    saved = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))["policies"]
    assert list(saved) == list(SIMULATED)
    assert all(found["seeds"] == 3 and not found["failures"] for found in saved.values())
    assert len({found["steps"] for found in saved.values()}) > 1, "they are different policies"
    assert "no violation" in said.output


def test_threads_are_interleaved_and_generated_mutants_surveyed(tmp_path: Path) -> None:
    said = run("simulate", "--interleavings", "--seeds", "2", "--first", "1")
    assert said.exit_code == 0, said.output
    assert "2 seeds, in which threads were switched" in said.output
    few = ("--module", "wallaby.lineage.tolerance", "--share", "0.05", "--seeds-max", "1", "--processes", "1")
    said = run("simulate", "--generated", *few, "--save", str(tmp_path / "g.json"))
    assert said.exit_code == 0, said.output
    saved = json.loads((tmp_path / "g.json").read_text(encoding="utf-8"))["mutants"]
    assert saved
    assert f"of {len(saved)} mutants caught" in said.output


def test_a_query_of_tpch_is_printed_as_it_is() -> None:
    assert "l_extendedprice * l_discount" in run("tpch", "query", "6").output


def test_a_query_is_read_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    class Input:
        def read(self) -> str:
            return "  select 1 ;\n"

    monkeypatch.setattr(sys, "stdin", Input())
    assert sql._read("-") == "select 1 "
    with pytest.raises(InvalidArgumentError):
        sql._read(" ")


# --- rows --------------------------------------------------------------------------------------------------

ROWS = pa.table(
    {
        "day": pa.array([date(2020, 2, 29), None]),
        "price": pa.array([Decimal("1.50"), Decimal("-0.01")], pa.decimal128(7, 2)),
        "share": pa.array([float("nan"), 0.5]),
        "text": pa.array(["[bold]a,b", 'c"d']),
    }
)


class _Answering:
    """A session, an engine and a result in one, whose only row is 1."""

    native = True
    settings = SimpleNamespace(ui_enabled="false")

    def sql(self, query: str) -> _Answering:
        if query.startswith("selct"):
            raise AnalysisException(message="[PARSE_SYNTAX_ERROR] Syntax error at or near 'selct'.")
        return self

    def run(self, _df: object) -> _Answering:
        return self

    def arrow(self) -> pa.Table:
        return pa.table({"n": [1]})


@pytest.mark.parametrize(
    ("setting", "local", "shown"),
    [("auto", True, True), ("auto", False, False), ("true", False, True), ("false", True, False)],
)
def test_long_commands_name_the_live_page_unless_it_is_off(
    setting: str, local: bool, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine: Any = SimpleNamespace(
        settings=SimpleNamespace(ui_enabled=setting),
        spark=SimpleNamespace(sparkContext=None),
        ui=SimpleNamespace(url="http://here"),
    )
    steps: list[Callable[[], str]] = []
    monkeypatch.setattr(cluster, "Cluster", lambda _context: SimpleNamespace(is_local=local))
    monkeypatch.setattr(session, "step", steps.append)
    session.step_with_page(engine, "running …")
    assert steps[0]() == ("running …  live page: http://here" if shown else "running …")


def answer(query: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What `wallaby sql` prints, and in which order an engine starts and ends meanwhile."""

    @contextmanager
    def session_for_engine(*_: object) -> Iterator[_Answering]:
        yield _Answering()

    @contextmanager
    def attached(*_: object) -> Iterator[_Answering]:
        sys.stdout.write("attached\n")
        yield _Answering()
        sys.stdout.write("closed\n")

    monkeypatch.setattr(sql, "session_for_engine", session_for_engine)
    monkeypatch.setattr(sql, "attached", attached)
    return run("sql", query, "--format", "csv", "-q").output


def test_rows_are_printed_before_the_engine_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert answer("select 1", monkeypatch) == "attached\nn\n1\nclosed\n"


def test_a_mistake_in_the_query_is_told_before_an_engine_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "attached" not in answer("selct 1", monkeypatch)


def test_rows_as_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    rows.print_rows(ROWS, "json", 0)
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first == {"day": "2020-02-29", "price": "1.50", "share": "nan", "text": "[bold]a,b"}
    assert second["day"] is None


def test_rows_as_csv(capsys: pytest.CaptureFixture[str]) -> None:
    rows.print_rows(ROWS, "csv", 0)
    assert capsys.readouterr().out == (
        'day,price,share,text\n2020-02-29,1.50,nan,"[bold]a,b"\n,-0.01,0.5,"c""d"\n'
    )


def test_rows_as_a_table_show_text_as_it_is_and_how_much_is_left_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from rich.console import Console

    monkeypatch.setattr(rows, "out", Console(file=sys.stdout, width=100))
    rows.print_rows(ROWS, "table", 1)
    captured = capsys.readouterr()
    assert "[bold]a,b" in captured.out
    assert 'c"d' not in captured.out
    assert "1 more rows" in captured.err


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".json"])
def test_rows_go_to_a_file_as_its_suffix_says(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"answer{suffix}"
    rows.check_suffix(path)
    rows.write_rows(ROWS, path)
    if suffix == ".parquet":
        assert pq.read_table(path).schema == ROWS.schema
    else:
        assert "2020-02-29" in path.read_text(encoding="utf-8")


def test_two_columns_of_one_name_are_both_printed(capsys: pytest.CaptureFixture[str]) -> None:
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    rows.print_rows(twice, "csv", 0)
    assert capsys.readouterr().out == "a,a\n1,2\n"


def test_answers_are_the_same_in_any_order_but_not_under_another_type() -> None:
    one, other = pa.table({"a": [1, 2]}), pa.table({"a": [2, 1]})
    assert same(one, other)
    assert not same(one, pa.table({"a": [1, 3]}))
    assert not same(one, pa.table({"a": pa.array([1, 2], pa.int32())}))


# --- Java and sessions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_391"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ('openjdk version "21-ea" 2023-09-19', 21),
        ("what?", 0),
    ],
)
def test_the_version_of_java_is_told(text: str, major: int) -> None:
    assert java_major(text) == major


def test_without_java_the_way_to_install_it_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaError, match="apt install openjdk"):
        find_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaError, match="JAVA_HOME"):
        find_java()


def test_a_java_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def old(*_: object, **__: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess((), 0, "", 'openjdk version "11.0.2" 2019-01-15')

    monkeypatch.setattr(subprocess, "run", old)
    with pytest.raises(JavaError, match="needs 17"):
        find_java()


def test_a_local_master_has_a_slot_more_than_taskmanagers() -> None:
    assert int(session.default_master(40)[6:-1]) >= 41


@pytest.mark.parametrize(
    ("path", "files", "expected"),
    [
        ("orders.csv", (), "csv"),
        ("orders.JSONL", (), "json"),
        ("orders", (), "parquet"),
        ("orders", ("_SUCCESS", "day=1/part-0.csv", "day=1/.part-0.csv.crc"), "csv"),
        ("orders", ("part-0.snappy.parquet",), "parquet"),
        ("orders.csv", ("part-0",), "csv"),
        ("s3://bucket/orders", (), "parquet"),
    ],
)
def test_the_format_of_a_table_is_that_of_its_files(
    tmp_path: Path, path: str, files: tuple[str, ...], expected: str
) -> None:
    table = path if "://" in path else str(tmp_path / path)
    for name in files:
        (tmp_path / path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path / name).touch()
    assert session.format_of(table) == expected


def test_tables_and_settings_are_read(tmp_path: Path) -> None:
    assert session.read_tables([f"t={tmp_path}", "u=s3://bucket/u", "v=data/*.parquet"]) == {
        "t": str(tmp_path),
        "u": "s3://bucket/u",
        "v": "data/*.parquet",
    }
    assert session.read_configuration(["spark.a=b=c"]) == {"spark.a": "b=c"}
    with pytest.raises(InvalidArgumentError, match="twice"):
        session.read_tables([f"t={tmp_path}", f"t={tmp_path}"])


def test_chaos_lists_its_faults_and_refuses_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = run("chaos", "--list").stdout.splitlines()
    assert {"commit: kill after", "the backup disk is full", "resume: restart"} <= set(said)
    out = ("--out", str(tmp_path))
    assert exits(("chaos", "--fault", "an earthquake", *out), monkeypatch) == 2
    assert exits(("chaos", "--fault", "w1:commit:3:explode", *out), monkeypatch) == 2
    assert exits(("chaos", "--query", "23", *out), monkeypatch) == 2
    missing = ("--data", str(tmp_path / "missing"))
    assert exits(("chaos", "--query", "6", "--fault", "commit", *missing, *out), monkeypatch) == 2
