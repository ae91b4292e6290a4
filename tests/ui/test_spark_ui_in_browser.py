"""The tab of Spark's UI that leads to the live page, in a real browser: `make browser`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.ui.chromium import Chromium
from tests.ui.test_browser import PICTURES

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
#: Prints the address of Spark's UI and the link of the live page; a line ends the engine, and another the program.
PROGRAM = """
from wallaby.commands.session import spark_session
import wallaby
with spark_session("local[2]", {"spark.ui.enabled": "true", "spark.ui.port": "0"}) as spark:
    with wallaby.attach(spark, workers=1, attach_timeout=300) as engine:
        print(spark.sparkContext.uiWebUrl, engine.ui, flush=True)
        input()
    print("closed", flush=True)
    input()
"""


@pytest.fixture(scope="module")
def program() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as started:
        yield started
        started.communicate("\n\n", timeout=120)


def test_sparks_ui_leads_to_the_live_page_and_keeps_its_token(
    program: subprocess.Popen[str], browser: Chromium
) -> None:
    assert program.stdout is not None
    assert program.stdin is not None
    spark_ui, link = program.stdout.readline().split()
    address, _, token = link.partition("?token=")
    browser.open(f"{spark_ui}/jobs/")
    tab = browser.ask(
        "[...document.querySelectorAll('a')].find(each => each.innerText.trim() == 'Wallaby')?.href"
    )
    assert tab, "the tab is among Spark's own"
    browser.open(tab)
    browser.picture(PICTURES / "spark-ui.png")
    assert address in browser.ask("[...document.links].map(each => each.href)")
    assert "Jobs" in browser.ask("document.body.innerText"), "Spark's header is above it"
    assert token not in browser.ask("document.documentElement.outerHTML")
    browser.open(address)
    assert "carries the token" in browser.ask("document.body.innerText")
    program.stdin.write("\n")
    program.stdin.flush()
    assert program.stdout.readline() == "closed\n"
    browser.open(f"{spark_ui}/jobs/")
    assert "Wallaby" not in browser.ask(
        "[...document.querySelectorAll('a')].map(each => each.innerText.trim())"
    )
