"""The live page, the history and the report in a real browser: light, dark and on a phone, and under load.

`make browser` runs this, and leaves the pictures in build/pictures to be looked at. It needs Chromium (Debian's, or any
that is on PATH).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.pages import ROOT
from tests.ui.chromium import SCREENS, Chromium
from tests.ui.test_pages import LOGS, ROWS, Fixed, write_busy_logs

from wallaby.observe.log_reading import read_log
from wallaby.observe.page import make_page
from wallaby.ui.log_source import LogSource
from wallaby.ui.pages import Pages
from wallaby.ui.server import PageServer
from wallaby.ui.source import QueryRow

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
PICTURES = ROOT / "build" / "pictures"
#: How a page is looked at: the screen, and whether it is dark.
LOOKS = [("desk", False), ("desk", True), ("phone", False), ("phone", True)]
#: The texts of the stage graph that leave their box.
TEXT_OUTSIDE = """[...document.querySelectorAll("svg.graph g")].flatMap(box => {
    const right = box.querySelector("rect").getBoundingClientRect().right;
    return [...box.querySelectorAll("text")].filter(text => text.getBoundingClientRect().right > right);
}).map(text => text.textContent)"""


class Growing(Fixed):
    """Another query with every look."""

    def __init__(self) -> None:
        super().__init__(ROWS)
        self.looks = 0

    def queries(self) -> Sequence[QueryRow]:
        self.looks += 1
        more = [
            QueryRow(f"9{n}", f"query number {n}", "native", "done", 1.7e9, 1.0) for n in range(self.looks)
        ]
        return [*more, *ROWS]


@pytest.fixture
def page() -> Iterator[PageServer]:
    made = PageServer(Pages(Growing()))
    yield made
    made.close()


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    """The history of 50 queries of 10,000 tasks each, on 64 TaskManagers."""
    logs = tmp_path_factory.mktemp("logs")
    write_busy_logs(logs)
    made = PageServer(Pages(LogSource(logs)))
    yield made
    made.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(make_page(read_log(LOGS / "recovery.jsonl")), encoding="utf-8")
    return path


def looks_right(browser: Chromium, name: str, screen: str, *, dark: bool) -> None:
    """Check what every page has to be, and take its picture."""
    assert browser.complaints() == []
    assert browser.too_wide() == 0, "it has to be pushed sideways"
    drawn = browser.picture(PICTURES / f"{name}-{screen}{'-dark' if dark else ''}.png")
    assert struct.unpack(">II", drawn[16:24]) == SCREENS[screen]
    red, green, blue = map(
        float, browser.ask("getComputedStyle(document.body).backgroundColor.match(/[0-9.]+/g).slice(0, 3)")
    )
    assert (red + green + blue < 200) == dark, "its colours are those that the reader likes"


def test_what_is_wrong_with_a_page_is_noticed(browser: Chromium) -> None:
    browser.open("data:text/html,<div style='width: 2000px'>wide</div><script>oops()</script>", "phone")
    assert browser.too_wide() > 1500
    assert len(browser.complaints()) == 1


def test_it_updates_itself_within_its_own_rules(page: PageServer, browser: Chromium) -> None:
    browser.open(page.url)
    browser.wait_for("document.body.innerText.includes('query number 1')")
    assert browser.complaints() == []
    assert "<script>alert(1)" in browser.ask("document.body.innerText")


def test_without_the_token_there_is_nothing(page: PageServer, browser: Chromium) -> None:
    browser.call("Network.clearBrowserCookies")
    browser.open(page.address)
    shown = browser.ask("document.body.innerText")
    assert "carries the token" in shown
    assert "app-1" not in shown


def test_the_token_leaves_the_address_bar(page: PageServer, browser: Chromium) -> None:
    browser.open(page.url)
    assert page.token not in browser.ask("location.href")
    assert browser.ask("document.cookie") == "", "no script can read the cookie"


@pytest.mark.parametrize(("screen", "dark"), LOOKS)
@pytest.mark.parametrize(("path", "name"), [("/", "live"), ("/query/1", "live-query")])
def test_the_live_page_looks_right(
    page: PageServer, browser: Chromium, path: str, name: str, screen: str, dark: bool
) -> None:
    browser.open(page.url.replace("/?", f"{path}?"), screen, dark=dark)
    looks_right(browser, name, screen, dark=dark)


@pytest.mark.parametrize(("screen", "dark"), LOOKS)
@pytest.mark.parametrize(("path", "name"), [("/", "history"), ("/query/07.jsonl", "history-query")])
def test_fifty_queries_of_ten_thousand_tasks_look_right(
    busy: PageServer, browser: Chromium, path: str, name: str, screen: str, dark: bool
) -> None:
    browser.open(busy.url.replace("/?", f"{path}?"), screen, dark=dark)
    looks_right(browser, name, screen, dark=dark)
    assert browser.ask("document.querySelectorAll('*').length") < 50_000, "a browser can scroll through it"
    assert browser.ask(TEXT_OUTSIDE) == [], "no text leaves its box"


@pytest.mark.parametrize(("screen", "dark"), LOOKS)
def test_the_report_looks_right(report: Path, browser: Chromium, screen: str, dark: bool) -> None:
    browser.open(report.as_uri(), screen, dark=dark)
    looks_right(browser, "report", screen, dark=dark)
