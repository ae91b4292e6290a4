"""The documentation site in a real browser: every page fits a phone and lacks no picture, and the main ones look right.

`make browser` builds the site before. The site is read from a web server, because its search needs one.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.pages import ROOT
from tests.ui.chromium import Chromium
from tests.ui.test_browser import LOOKS, looks_right

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
SITE = ROOT / "build" / "site"
MAIN = (
    "index",
    "tutorial",
    "guides/observability",
    "concepts/lineage",
    "concepts/loss",
    "reference/api",
    "results/bench-sf10",
    "evaluation",
)
#: The pictures of a page that did not come.
NO_PICTURE = "[...document.images].filter(each => each.complete && !each.naturalWidth).map(each => each.src)"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the base's name
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    if not (SITE / "index.html").exists():
        pytest.skip("there is no site: make docs")
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=SITE))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(("screen", "dark"), LOOKS)
@pytest.mark.parametrize("name", MAIN)
def test_a_page_of_the_site_looks_right(
    site: str, browser: Chromium, name: str, screen: str, dark: bool
) -> None:
    browser.open(f"{site}/{name}.html", screen, dark=dark)
    looks_right(browser, f"site-{Path(name).name}", screen, dark=dark)


def test_every_page_fits_a_phone_and_lacks_nothing(site: str, browser: Chromium) -> None:
    wrong = []
    for path in sorted(SITE.rglob("*.html")):
        name = path.relative_to(SITE).as_posix()
        if name.startswith("source/"):
            continue
        browser.open(f"{site}/{name}", "phone")
        wrong += [f"{name}: {what}" for what in (*browser.complaints(), *browser.ask(NO_PICTURE))]
        wrong += [f"{name}: {wide} pixels too wide"] if (wide := browser.too_wide()) else []
    assert wrong == []


def test_the_search_finds_a_setting(site: str, browser: Chromium) -> None:
    browser.open(f"{site}/index.html?q=spark.wallaby.broadcast")
    browser.wait_for("document.querySelector('.md-search-result__item a')?.href.includes('configuration')")
