"""The live page of a real engine in a real browser, while a query runs that has lost a worker: `make browser`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.ui.chromium import Chromium
from tests.ui.test_browser import LOOKS, looks_right

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
#: Prints the link of the live page; kills a worker during a query whose rows nobody takes, so that it stays under way;
#: prints which; and after a line takes the rows.
PROGRAM = """
import os, signal, time
from wallaby.commands.session import spark_session
import wallaby
with spark_session("local[4]", {"spark.wallaby.window": "1m", "spark.driver.memory": "1g"}) as spark:
    spark.range(20_000).selectExpr("id k", "id % 4 region").write.parquet("orders")
    spark.range(0, 400_000, 1, 8).selectExpr("id % 20000 k", "concat('p', id % 97) p", "id v").write.parquet("items")
    for name in ("orders", "items"):
        spark.read.parquet(name).createOrReplaceTempView(name)
    with wallaby.attach(spark, workers=2, threads=1, attach_timeout=300) as engine:
        print(engine.ui, flush=True)
        result = engine.run(spark.sql("select * from items join orders using (k)"))
        batches = result.batches()
        rows = next(batches).num_rows
        victim = engine.workers()[0]
        os.kill(victim.pid, signal.SIGKILL)
        while not engine.history()[-1].lost_workers:
            time.sleep(0.1)
        print(victim.id, flush=True)
        input()
        assert rows + sum(batch.num_rows for batch in batches) == 400_000
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    here: Path = tmp_path_factory.mktemp("program")
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], cwd=here, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as started:
        assert started.stdout is not None
        link, lost = started.stdout.readline().strip(), started.stdout.readline().strip()
        assert lost, "the program says on standard error why it ended"
        yield link, lost
        started.communicate("\n", timeout=120)
        assert started.returncode == 0, "no row is missing"


@pytest.mark.parametrize(("screen", "dark"), LOOKS)
def test_a_query_that_lost_a_worker_is_seen_while_it_runs(
    program: tuple[str, str], browser: Chromium, screen: str, dark: bool
) -> None:
    link, lost = program
    browser.open(link, screen, dark=dark)
    shown = browser.ask("document.body.innerText")
    assert "running" in shown
    assert f"lost {lost}" in shown
    looks_right(browser, "running", screen, dark=dark)
