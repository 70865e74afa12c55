"""Builds the page of `examples/ticker`, and uses it in a real browser."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from tests.feeds.browser import Browser, browsing

import weirpool
from weirpool import Settings

from .processes import run_tool

__all__ = ["ticker"]

SECONDS = 120.0
"""Time limit for one command, on a busy machine."""
CREDIT = 32
"""As in ticker.ts."""
TAKEN = "+document.getElementById('state').textContent.split(' ')[0]"
SAME = "window.same = window.last === (window.last = document.body.innerText) ? window.same + 1 : 0"
"""How often the page has been the same, each time 20 ms later."""
STATE = "document.getElementById('state').textContent"


async def ticker(folder: Path) -> dict[str, str]:
    """Return the results of all checks of the page in `folder`, whose packages are installed.

    Raises:
        ProcessFailed: The page cannot be built.

    """
    codegen = [
        sys.executable,
        "-m",
        "weirpool",
        "codegen",
        "../ticker.py:service",
        "--ts",
        "rsocket",
        "-o",
        "quotes.ts",
    ]
    for command in (codegen, ["npm", "run", "check"], ["npm", "run", "build"]):
        await run_tool(command, folder, SECONDS)
    from examples.ticker.ticker import service

    with _files(folder) as page:
        settings = Settings(origins=(page,))
        async with weirpool.serve(service, "rsocket+ws://127.0.0.1:0/", settings=settings) as server:
            return await asyncio.to_thread(_used, f"{page}/?server={server.urls[0].partition('+')[2]}")


@contextmanager
def _files(folder: Path) -> Iterator[str]:
    """Serve the files of a folder over HTTP while the block lasts, and yield the origin."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def _used(url: str) -> dict[str, str]:
    checks: dict[str, Callable[[Browser], None]] = {"page-live": _live, "page-pause": _pause, "page-error": _error}
    results = {}
    with tempfile.TemporaryDirectory() as folder, browsing(Path(folder)) as browser:
        for name, check in checks.items():
            browser.open(url if name != "page-error" else f"{url}&symbols=NONE")
            try:
                check(browser)
                results[name] = "ok"
            except (AssertionError, OSError) as error:
                results[name] = f"{error or 'a check failed'}; the page says {browser.texts('#state')}"
    return results


def _live(browser: Browser) -> None:
    browser.until(f"{TAKEN} >= 100")
    rows = browser.texts("#quotes tr")
    assert len(rows) == 4, f"the rows are {rows}"


def _pause(browser: Browser) -> None:
    browser.until(f"{TAKEN} >= 5")
    browser.run("document.getElementById('pause').click()")
    # The number of prices that wait grows until the server has used up its credit.
    browser.until(f"({SAME}) > 25 && {STATE}.startsWith('Paused after')")
    words = browser.texts("#state")[0].split()
    taken, waiting = int(words[2]), int(words[4])
    assert waiting <= CREDIT, f"{waiting} prices wait"
    browser.run("document.getElementById('pause').click()")
    # The page fails if a price is missing, so all that waited are shown.
    browser.until(f"{TAKEN} >= {taken + 3 * CREDIT}")


def _error(browser: Browser) -> None:
    browser.until(f"{STATE} === 'NONE: known are ACME, BOLT, CORK, DUNE'")
