"""The live page in a real browser: it updates itself, keeps its own rules, and can be read in dark and on a phone.

`make browser` runs this. It needs Chromium (Debian's, or any that is on PATH).
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from tests.ui.test_pages import ROWS, Fixed

from wallaby.ui.pages import Pages
from wallaby.ui.server import PageServer
from wallaby.ui.source import QueryRow

CHROMIUM = next(
    (path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None
)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(300),
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on PATH"),
]


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


@pytest.fixture
def browse(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(url: str, *options: str) -> subprocess.CompletedProcess[str]:
        fixed = (
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--enable-logging=stderr",
            f"--user-data-dir={tmp_path / 'profile'}",
        )
        assert CHROMIUM is not None
        return subprocess.run(
            [CHROMIUM, *fixed, *options, url], capture_output=True, text=True, timeout=240, check=True
        )

    return run


def complaints(run: subprocess.CompletedProcess[str]) -> list[str]:
    """What the page itself did wrong, according to the browser's console."""
    return [line for line in run.stderr.splitlines() if "CONSOLE" in line]


def test_it_updates_itself_within_its_own_rules(
    page: PageServer, browse: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    run = browse(page.url, "--virtual-time-budget=8000", "--dump-dom")
    assert complaints(run) == []
    assert "query number 1" in run.stdout, "the body was asked for again"
    assert "&lt;script&gt;alert(1)" in run.stdout


def test_without_the_token_there_is_nothing(
    page: PageServer, browse: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    run = browse(f"http://127.0.0.1:{page.port}/", "--dump-dom")
    assert "carries the token" in run.stdout
    assert "app-1" not in run.stdout


@pytest.mark.parametrize(
    ("path", "width", "height", "option"),
    [
        ("/", 1200, 800, ""),
        ("/", 400, 800, ""),
        ("/query/1", 1200, 1600, ""),
        ("/query/1", 1200, 1600, "--blink-settings=preferredColorScheme=0"),
    ],
    ids=["light", "phone", "query", "dark"],
)
def test_it_can_be_seen(
    page: PageServer,
    browse: Callable[..., subprocess.CompletedProcess[str]],
    tmp_path: Path,
    path: str,
    width: int,
    height: int,
    option: str,
) -> None:
    shot = tmp_path / "page.png"
    options = [option] if option else []
    run = browse(
        page.url.replace("/?", f"{path}?"),
        f"--window-size={width},{height}",
        f"--screenshot={shot}",
        *options,
    )
    assert complaints(run) == []
    drawn = shot.read_bytes()
    assert struct.unpack(">II", drawn[16:24]) == (width, height)
    assert len(drawn) > 10_000, "an empty page would be smaller"
