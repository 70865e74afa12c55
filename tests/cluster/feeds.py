"""The six feeds, and their publisher."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chaos.children import ROOT
from chaos.sources import Source

from tests.transports.certificates import Certificates

from .processes import Program

__all__ = ["FEEDS", "GRACE", "Feed", "Publisher", "weirpool"]

GRACE: Final = 60
"""Seconds for which the publisher keeps sessions without a link: longer than a collector needs to start again."""
HERE: Final = "127.0.0.1:0"


@dataclass(frozen=True)
class Feed:
    """A feed: `source` is its name, and whether its session outlives the collector."""

    source: Source
    transport: str
    place: int
    """The address of the publisher that it connects to."""
    path: str = ""

    @property
    def name(self) -> str:
        return self.source.name


FEEDS: Final = (
    Feed(Source("tcp", "rsocket"), "tcp", 0),
    Feed(Source("draft", "reactivesocket-0.2"), "tcp", 0),
    Feed(Source("tls", "rsocket"), "tls", 1),
    Feed(Source("ws", "rsocket"), "ws", 2),
    Feed(Source("river", "river"), "ws", 3, "/river"),
    Feed(Source("streams", "reactive-streams", resumes=False), "tcp", 4),
)


def weirpool(*arguments: str) -> list[str]:
    """Return a command of this Weirpool."""
    return [sys.executable, "-m", "weirpool", *arguments]


class Publisher:
    """One service at five addresses.

    Args:
        folder: For its files, and for the file `finish`.
        certificates: Those of the feed over TLS.

    """

    def __init__(self, folder: Path, certificates: Certificates) -> None:
        self.folder = folder
        self.certificates = certificates
        urls = [
            f"rsocket+tcp://{HERE}",
            f"rsocket+tls://{HERE}?{certificates.server_options}",
            f"rsocket+ws://{HERE}",
            f"river+ws://{HERE}/river",
            f"reactive-streams+tcp://{HERE}",
        ]
        keep = ["--resume", str(GRACE), "--set", f"session_grace={GRACE}"]
        command = weirpool("serve", "tests/cluster/publisher.py:service", *urls, *keep)
        self.program = Program("publisher", command, folder, {"LAB_FOLDER": str(folder), "PYTHONPATH": str(ROOT)})
        shown = self.program.await_lines(r"listening on \S+?://([^/?\s]+)", len(urls))
        self._places = shown

    def url(self, feed: Feed) -> str:
        """Return the URL by which a collector connects to a feed."""
        return f"{feed.source.protocol}+{feed.transport}://{self._places[feed.place]}{feed.path}"

    def finish(self) -> None:
        """End all feeds."""
        (self.folder / "finish").touch()

    def made(self, feed: Feed) -> dict[int, int]:
        """Return the number of items of each run that has ended."""
        file = self.folder / f"{feed.name}.ended"
        lines = file.read_text().splitlines() if file.exists() else []
        return {int(run): int(made) for run, made in map(str.split, lines)}

    def file(self, store: str) -> str:
        """Return the file of feeds of a group, which are confirmed when they are in a store, and sealed there."""
        lines = ['[defaults]\nroute = "lab.items"\njournal = "journal"\nretry = {first = "200ms", longest = "1s"}']
        lines.append(f'storage = {{store = "{store}", seal_age = "1s", durable = "remote"}}')
        lines.append('[group]\nname = "lab"\nkey = {env = "LAB_KEY"}\npatience = "3s"')
        at = self.certificates.folder
        lines.append(f'[serve]\nurl = "rsocket+tls://{HERE}"\ncert = "{at}/cert.pem"\nkey = "{at}/key.pem"')
        lines.append(f'cafile = "{at}/ca.pem"')
        for feed in FEEDS:
            lines.append(f"""[feed.{feed.name}]\nurl = "{self.url(feed)}"\ndata = '"{feed.name}"'""")
            if feed.transport == "tls":
                lines.append(f'tls = {{cafile = "{self.certificates.folder}/ca.pem"}}')
            if feed.source.protocol == "river":
                lines.append(f"settings = {{session_grace = {GRACE}}}")
        return "\n".join(lines) + "\n"
