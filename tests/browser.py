"""A real browser for tests: Chromium without a window, spoken to over its debugging pipe.

Nothing listens on a port; the browser reaches no network and keeps its profile in the folder given.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

SECONDS = 30
"""How long an answer may take."""

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--remote-debugging-pipe",
)


def program(names: tuple[str, ...] = NAMES) -> str:
    """The first of these programs; without any the test is left out, or fails where it must run."""
    for name in names:
        if found := shutil.which(name):
            return found
    reason = f"none of {', '.join(names)} is installed (Debian: apt-get install chromium)"
    if os.environ.get("SPANWISE_REQUIRE_SYSTEM") == "1":
        pytest.fail(f"SPANWISE_REQUIRE_SYSTEM=1, and {reason}")
    pytest.skip(reason)


class Tab:
    """One page of a running browser."""

    def __init__(self, asked: int, told: int) -> None:
        self._asked, self._told = asked, told
        self._number, self._rest = 0, b""
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Send one command and wait for its answer; events that come between are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": arguments}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._asked, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return dict(answer["result"])
            self.events.append(answer)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            assert select.select([self._told], [], [], SECONDS)[0], f"no answer in {SECONDS} s"
            got = os.read(self._told, 1 << 20)
            assert got, "the browser closed its pipe"
            self._rest += got
        head, self._rest = self._rest.split(b"\0", 1)
        return dict(json.loads(head))

    def open(self, url: str, width: int, height: int, *, dark: bool = False) -> None:
        """Load a page in a window of this size and colour scheme."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.call("Emulation.setEmulatedMedia", features=[scheme, still])
        # By way of a blank page: a change of fragment alone would load nothing.
        for place in ("about:blank", url):
            self.events = [e for e in self.events if e["method"] != "Page.loadEventFired"]
            self.call("Page.navigate", url=place)
            while not any(e["method"] == "Page.loadEventFired" for e in self.events):
                self.events.append(self._read())

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page; promises are waited for."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                          awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until a JavaScript expression holds."""
        found = self.run(f"""new Promise(done => {{
            const until = performance.now() + 1000 * {SECONDS} / 2;
            const look = () => ({condition}) ? done(true) :
                performance.now() > until ? done(false) : setTimeout(look, 10);
            look(); }})""")
        assert found, f"never so: {condition}"

    def key(self, name: str) -> None:
        """Press a key where the focus is: a character, or a name such as Escape."""
        text = {"Enter": "\r"}.get(name, name if len(name) == 1 else "")
        codes = {"Enter": 13, "Escape": 27, "Tab": 9, " ": 32, "ArrowLeft": 37, "ArrowUp": 38,
                 "ArrowRight": 39, "ArrowDown": 40}
        code = codes.get(name) or ord(name.upper())
        self.call("Input.dispatchKeyEvent", type="keyDown", key=name, text=text,
                  code="Space" if name == " " else name, windowsVirtualKeyCode=code)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name, windowsVirtualKeyCode=code)

    def _focus(self, selector: str) -> None:
        focus = "(found => found ? (found.focus(), true) : false)"
        assert self.run(f"{focus}(document.querySelector({json.dumps(selector)}))"), selector

    def press(self, selector: str) -> None:
        """Focus an element and press Enter on it, as a person at a keyboard would."""
        self._focus(selector)
        self.key("Enter")

    def press_space(self, selector: str) -> None:
        """Focus an element, e.g. a box to tick, and press the space bar on it."""
        self._focus(selector)
        self.key(" ")

    def picture(self, path: Path, *, whole: bool = False) -> Path:
        """Write what the window shows as PNG, or the whole page."""
        # Two frames: what a script has just changed is drawn by then.
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        taken = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(taken["data"]))
        return path


@contextmanager
def browser(profile: Path) -> Iterator[Tab]:
    """Run Chromium with a new profile and give its tab."""
    # The browser takes commands on descriptor 3 and answers on 4, which a shell arranges.
    line = 'exec "$@" 3<&0 4>&1 0</dev/null 1>/dev/null'
    process = subprocess.Popen(
        ["/bin/sh", "-c", line, "sh", program(), *FLAGS, f"--user-data-dir={profile}"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        tab = Tab(process.stdin.fileno(), process.stdout.fileno())
        yield tab
        tab._session = None
        with suppress(AssertionError, OSError):
            tab.call("Browser.close")
    finally:
        process.stdin.close()
        process.stdout.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
