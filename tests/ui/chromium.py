"""A real browser for tests: Chromium without a window, driven through a pipe by its DevTools protocol.

Chromium's command line alone cannot make a window narrower than 500 pixels, show the colours for readers who like it
dark, or answer questions about a page. The protocol can, and one browser serves all tests.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Final

PROGRAM: Final = next(
    (path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None
)
OPTIONS: Final = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"),
    *("--no-first-run", "--disable-background-networking", "--disable-sync"),
)
ANSWER_SECONDS: Final = 120.0
#: What readers have in their hands.
SCREENS: Final = {"desk": (1280, 900), "phone": (390, 844)}


class Chromium:
    """A browser with one tab, until `close`."""

    def __init__(self, profile: Path) -> None:
        assert PROGRAM is not None
        inward, self._out = os.pipe()
        self._in, outward = os.pipe()
        program = f'exec "$0" "$@" 3<&{inward} 4>&{outward}'
        self._process = subprocess.Popen(
            ["bash", "-c", program, PROGRAM, *OPTIONS, f"--user-data-dir={profile}"],
            pass_fds=(inward, outward),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(inward)
        os.close(outward)
        self._number, self._buffer, self._session, self._width = 0, b"", "", 0
        self._events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def open(self, url: str, screen: str = "desk", *, dark: bool = False) -> None:
        """Load a page as a reader with this screen sees it, to its end."""
        width, height = SCREENS[screen]
        self._width = width
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=screen == "phone",
        )
        scheme = "dark" if dark else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self._events.clear()
        went = self.call("Page.navigate", url=url)
        assert "errorText" not in went, f"{url}: {went['errorText']}"
        self._await(lambda: any(event["method"] == "Page.loadEventFired" for event in self._events))

    def ask(self, expression: str) -> Any:
        """The value of an expression of JavaScript on the page; promises are awaited."""
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Wait until an expression is true."""
        look = f"const look = () => ({expression}) ? done(true) : setTimeout(look, 50); look()"
        assert self.ask(f"new Promise(done => {{ {look} }})") is True

    def too_wide(self) -> int:
        """By how many pixels the page is wider than the screen, so that it has to be pushed sideways."""
        # `innerWidth` grows with the page on a phone, which then shows all of it, smaller.
        return max(int(self.ask("document.documentElement.scrollWidth")) - self._width, 0)

    def complaints(self) -> list[str]:
        """What went wrong on the page, according to the browser: exceptions, errors, what its policy forbids."""
        wrong = []
        for event in self._events:
            said = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                wrong.append(str(said["exceptionDetails"].get("text")))
            elif event["method"] == "Log.entryAdded" and said["entry"]["level"] == "error":
                wrong.append(f"{said['entry'].get('url', '')}: {said['entry']['text']}")
            elif event["method"] == "Runtime.consoleAPICalled" and said["type"] == "error":
                wrong.append(json.dumps(said["args"]))
        return wrong

    def picture(self, path: Path, *, whole: bool = False) -> bytes:
        """A picture of what is on the screen, or of the whole page, as a PNG file."""
        drawn = self.call(
            "Page.captureScreenshot", format="png", captureBeyondViewport=whole, **self._clip(whole)
        )
        data = base64.b64decode(drawn["data"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return data

    def _clip(self, whole: bool) -> dict[str, Any]:
        if not whole:
            return {}
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}

    def close(self) -> None:
        """End the browser."""
        os.close(self._out)
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(20)
        os.close(self._in)

    # --- the protocol --------------------------------------------------------------------------------

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol, and return its result."""
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        answers: list[dict[str, Any]] = []
        self._await(lambda: bool(answers), number, answers)
        assert "error" not in answers[0], f"{method}: {answers[0]['error']}"
        return dict(answers[0]["result"])

    def _await(self, done: Any, number: int = 0, answers: list[dict[str, Any]] | None = None) -> None:
        """Read messages until `done`; the answer with the number goes to `answers`, events are kept."""
        deadline = time.monotonic() + ANSWER_SECONDS
        while not done():
            assert time.monotonic() < deadline, "the browser does not answer"
            message = self._next(deadline)
            if answers is not None and message.get("id") == number:
                answers.append(message)
            elif "method" in message:
                self._events.append(message)

    def _next(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(deadline - time.monotonic(), 0))
            assert ready, "the browser does not answer"
            read = os.read(self._in, 1 << 20)
            assert read, "the browser has ended"
            self._buffer += read
        text, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(text))
