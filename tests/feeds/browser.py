"""A real browser for tests: Chromium without a window, over WebDriver (W3C)."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.missing import need

__all__ = ["ENTER", "TAB", "Browser", "browsing"]

SECONDS = 60
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
ENTER, TAB = "\ue007", "\ue004"
# Tests run as root in containers, and without the network.
ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps",
)  # fmt: skip


class Browser:
    """One window of the browser.

    Args:
        base: The URL of its driver's session.

    """

    def __init__(self, base: str) -> None:
        self._base = base

    def open(self, url: str) -> None:
        """Load a page."""
        self._ask("url", {"url": url})

    def run(self, script: str, *arguments: Any) -> Any:
        """Run a function body in the page, and return its result."""
        return self._ask("execute/sync", {"script": script, "args": list(arguments)})

    def until(self, condition: str, *arguments: Any) -> None:
        """Wait until an expression is true in the page. It is evaluated for each frame that is drawn."""
        script = f"""
            const [done, ...rest] = [arguments[arguments.length - 1], ...arguments];
            const check = () => ({condition}) ? done(true) : setTimeout(check, 20);
            check();
        """
        self._ask("execute/async", {"script": script, "args": list(arguments)})

    def texts(self, selector: str) -> list[str]:
        """Return the visible text of all elements that match a selector."""
        found: list[str] = self.run(
            "return [...document.querySelectorAll(arguments[0])].map(e => e.innerText)", selector
        )
        return found

    def type(self, keys: str) -> None:
        """Type keys into the element that has the focus."""
        [active] = [self._ask("element/active", None)[ELEMENT]]
        self._ask(f"element/{active}/value", {"text": keys})

    def resize(self, width: int, height: int) -> None:
        """Change the size of the page in pixels, as of a device."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.command("Emulation.setDeviceMetricsOverride", **metrics)

    def prefer(self, scheme: str) -> None:
        """Prefer the color scheme "light" or "dark"."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.command("Emulation.setEmulatedMedia", features=features)

    def command(self, name: str, **parameters: Any) -> Any:
        """Send a command of the DevTools protocol."""
        return self._ask("goog/cdp/execute", {"cmd": name, "params": parameters})

    def log(self) -> list[str]:
        """Return the messages on the console since the last call."""
        return [entry["message"] for entry in self._ask("se/log", {"type": "browser"})]

    def _ask(self, path: str, body: Any) -> Any:
        return _ask(f"{self._base}/{path}", body)


@contextmanager
def browsing(folder: Path) -> Iterator[Browser]:
    """Run a browser with a profile of its own in `folder`."""
    need("chromium", "chromedriver")
    driver = ["chromedriver", "--port=0", f"--log-path={folder / 'driver.log'}"]
    with subprocess.Popen(driver, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            # The first line names port 0.
            ports = (re.search(r"successfully on port (\d+)", line) for line in process.stdout)
            base = next(f"http://127.0.0.1:{port[1]}/session" for port in ports if port)
            options = {"args": [*ARGUMENTS, f"--user-data-dir={folder / 'profile'}"]}
            wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
            session = _ask(base, {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
            try:
                yield Browser(f"{base}/{session}")
            finally:
                _ask(f"{base}/{session}", None, "DELETE")
        finally:
            process.terminate()


def _ask(url: str, body: Any, method: str | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=SECONDS) as response:
        return json.load(response)["value"]
