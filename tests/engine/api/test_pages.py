"""The Python blocks of README, tutorial and guides run as they are printed: page by page, from top to bottom.

A guide goes on from the tutorial: it has the tutorial's session and tables. All of them share one session.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.pages import PAGES, CodeBlock, blocks
from tests.spark_sessions import Engines

import wallaby
from wallaby.engine import attached_to

TUTORIAL = "docs/tutorial.md"
#: The part of the tutorial that makes the tables of the guides.
TABLES = "Make two tables"
#: Shell blocks that are run too: quick ones, that need nothing but what the page has made.
QUICK = ("wallaby report", "wallaby --version")
#: For a busy machine.
PATIENT = {"spark.wallaby.attachTimeout": "300s", "spark.wallaby.lease": "3s"}


def run(block: CodeBlock, names: dict[str, Any]) -> None:
    """Run a block so that an error shows the line of the page."""
    source = "\n" * block.line + block.text
    exec(compile(source, str(block.page), "exec"), names)


@contextmanager
def spark_works_in(spark: SparkSession, directory: Path) -> Iterator[None]:
    """Have the JVM take relative paths from a directory, as this process does after `chdir`."""
    jvm: Any = spark._jvm
    files = jvm.org.apache.hadoop.fs.FileSystem.get(spark._jsc.hadoopConfiguration())
    before = files.getWorkingDirectory()
    files.setWorkingDirectory(jvm.org.apache.hadoop.fs.Path(str(directory)))
    yield
    files.setWorkingDirectory(before)


@pytest.fixture(scope="module")
def tables(
    engines: Engines, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A directory with the tables of the tutorial, and the names that it defines."""
    engines.close()
    here = tmp_path_factory.mktemp("pages")
    names: dict[str, Any] = {"spark": spark}
    before = {key: spark.conf.get(key, None) for key in PATIENT}
    for key, value in PATIENT.items():
        spark.conf.set(key, value)
    with chdir(here), spark_works_in(spark, here):
        for block in blocks(TUTORIAL):
            if block.heading == TABLES and block.language == "python":
                run(block, names)
        yield here, names
    for key, known in before.items():
        spark.conf.unset(key) if known is None else spark.conf.set(key, known)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_from_top_to_bottom(
    page: str, tables: tuple[Path, dict[str, Any]], spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    here, names = tables
    names = dict(names)
    ran = 0
    settings = {key for key, _ in spark.conf.getAll.items()}
    try:
        for block in blocks(page):
            if block.not_run:
                compile(block.text, str(block), "exec") if block.language == "python" else None
            elif block.language == "python" and not (page == TUTORIAL and block.heading == TABLES):
                run(block, names)
                ran += 1
            elif block.language == "bash" and all(
                " ".join(words).startswith(QUICK) for words in block.commands
            ):
                path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
                subprocess.run(
                    ["bash", "-euc", block.text], cwd=here, env={"PATH": path}, check=True, timeout=100
                )
    finally:
        wallaby.disable(spark)
        left = attached_to(spark)
        if left is not None:
            left.close()
        for key in {key for key, _ in spark.conf.getAll.items()} - settings:
            spark.conf.unset(key)
    assert ran or not any(block.language == "python" and not block.not_run for block in blocks(page))
    assert left is None or page == "README.md", "a page closes the engine that it attaches"
    if page == TUTORIAL:
        assert names["result"].stats.recoveries >= 1, "the killed worker was noticed"
        assert "recoveries" in capsys.readouterr().out
