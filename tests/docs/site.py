"""The built site, as its files say it: pages, what they load, where they link to, and their anchors."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urlsplit

from tests.docs.pages import ROOT

__all__ = ["HtmlPage", "SiteServer", "build", "read"]

LOADING = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "object": "data"}
LINKS = {"canonical", "prev", "next", "alternate", "edit"}
"""Links of these relations load nothing."""


@dataclass
class HtmlPage(HTMLParser):
    """A page of the site.

    Attributes:
        loaded: The addresses of everything that it loads.
        linked: The addresses that it links to.
        anchors: The ids in it.
        components: The names of the theme's components in it.
        classes: The classes of its elements.

    """

    loaded: list[str] = field(default_factory=list)
    linked: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    components: set[str] = field(default_factory=set)
    classes: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors.add(found.get("id", ""))
        self.components.add(found.get("data-md-component", ""))
        self.classes.update(found.get("class", "").split())
        address = found.get(LOADING.get(tag, ""), "")
        if address and found.get("rel", "") not in LINKS:
            self.loaded.append(address)
        if tag == "a" and "href" in found:
            self.linked.append(found["href"])


def build(folder: Path) -> Path:
    """Build the site as `make docs` does, and return its folder. A warning is an error."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stdout + result.stderr
    return folder


def read(site: Path) -> dict[str, HtmlPage]:
    """Return the pages by their paths in the site."""
    pages = {}
    for file in sorted(site.rglob("*.html")):
        page = HtmlPage()
        page.feed(file.read_text())
        pages[file.relative_to(site).as_posix()] = page
    return pages


def target_of(page: str, address: str) -> tuple[str, str]:
    """Return the path in the site that a link of a page leads to, and the anchor."""
    parts = urlsplit(address)
    if not parts.path:
        return page, unquote(parts.fragment)
    path = os.path.normpath(os.path.join(os.path.dirname(page), unquote(parts.path)))
    if parts.path.endswith("/") or path == ".":
        path = os.path.normpath(os.path.join(path, "index.html"))
    return path, unquote(parts.fragment)


class SiteServer:
    """Serves a site on a free port, and notes the paths that are not there."""

    def __init__(self, site: Path) -> None:
        missing = self.missing = list[str]()

        class Handler(SimpleHTTPRequestHandler):
            # A browser opens connections in advance; those that it does not need must not outlive the test.
            timeout = 1.0

            def log_message(self, *_: object) -> None: ...

            def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
                missing.append(self.path)
                super().send_error(code, message, explain)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(site)))
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        self._thread = Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> SiteServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
