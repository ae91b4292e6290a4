"""Unsupported versions of Spark are refused, with the versions that are supported."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest

from tools import run_versions
from wallaby.catalyst import spark_versions
from wallaby.commands import doctor
from wallaby.errors import AttachError, UnsupportedSparkError


@pytest.mark.parametrize("version", ["3.5.9", "4.0.5", "4.4.0", "5.0.0.dev1", "unknown"])
def test_an_unsupported_version_is_refused_with_those_that_are_supported(version: str) -> None:
    with pytest.raises(UnsupportedSparkError) as refused:
        spark_versions.check_version(version)
    assert isinstance(refused.value, AttachError)
    assert version in refused.value.what
    assert spark_versions.supported_text() in refused.value.what
    assert refused.value.fields["supported"] == ("4.1", "4.2", "4.3")


@pytest.mark.parametrize("version", ["4.1.0", "4.2.1", "4.3.0", "4.3.0.dev4", pyspark.__version__])
def test_a_supported_version_is_accepted(version: str) -> None:
    spark_versions.check_version(version)


def test_importing_attach_refuses_an_unsupported_version(monkeypatch: pytest.MonkeyPatch) -> None:
    import wallaby

    monkeypatch.setattr(spark_versions.check_version, "__defaults__", ("3.5.9", "PySpark"))
    with pytest.raises(UnsupportedSparkError, match=r"PySpark 3\.5\.9"):
        _ = wallaby.attach


def test_the_doctor_names_an_unsupported_version(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "_version", lambda _package: "4.0.5")
    assert not doctor._run("PySpark", doctor._pyspark)
    assert "4.1, 4.2 and 4.3" in " ".join(capsys.readouterr().out.split())


def test_the_versions_that_are_supported_are_those_that_are_tested_and_documented() -> None:
    texts = [f"{major}.{minor}" for major, minor in spark_versions.SUPPORTED]
    assert list(run_versions.RELEASES) == texts
    page = run_versions.PAGE.read_text(encoding="utf-8")
    assert [text for text in texts if f"| {text} | supported" not in page] == []
    project = Path("pyproject.toml").read_text(encoding="utf-8")
    (first, *_), last = texts, spark_versions.SUPPORTED[-1]
    assert f'"pyspark>={first},<{last[0]}.{last[1] + 1}"' in project


def test_steps_are_counted_by_what_they_show() -> None:
    steps = [("writes", ""), ("writes", "ValueError: no"), ("results", "")]
    found = run_versions.counts([{"part": part, "failed": why} for part, why in steps])
    assert found == {"writes": {"passed": 1, "failed": 1}, "results": {"passed": 1, "failed": 0}}
    assert (
        run_versions.table({"4.1": found, "4.2": {}}).splitlines()[2]
        == "| writes | 1 pass, 1 fail | not run |"
    )
