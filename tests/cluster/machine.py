"""A machine with a disk of its own, whose collector collects the feeds of a group, or stands by."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from chaos.children import ROOT

from tests.objects.stores import CREDENTIALS

from .feeds import Feed, Publisher
from .processes import Program, until

__all__ = ["Machine"]

SECONDS = 120.0
"""How long an answer may take, on a machine that is busy."""
KEY = "c2l4IGZlZWRzLCBhIHN0b3JlIGFuZCBhIGNsdXN0ZXI="
"""The key of the group: 32 bytes."""


class Machine:
    """A collector, and its disk.

    Args:
        disk: The disk's folder, which nobody else sees.
        publisher: The publisher of the feeds.
        store: The URI of the group's store.
        saboteur: What is wrong with its code; empty: nothing.

    Attributes:
        url: The URL at which Spark reads the journal while the machine is the owner of the group.

    """

    def __init__(self, disk: Path, publisher: Publisher, store: str, saboteur: str = "") -> None:
        self.disk = disk
        self._publisher = publisher
        self._saboteur = saboteur
        self._collector: Program | None = None
        disk.mkdir(parents=True)
        (disk / "feeds.toml").write_text(publisher.file(store))

    def start(self) -> None:
        """Start the collector."""
        start = [sys.executable, "-m", "weirpool"]
        environment = {**CREDENTIALS, "LAB_KEY": KEY, "PYTHONPATH": str(ROOT)}
        if self._saboteur:
            # Compiled classes cannot be patched.
            environment["WEIRPOOL_PURE"] = "1"
            start = [sys.executable, "-m", "tests.cluster.sabotaged", self._saboteur]
        command = [*start, "collect", "--config", str(self.disk / "feeds.toml"), "--http", "0"]
        self._collector = Program("collector", command, self.disk, environment)
        (self._page,) = self._collector.await_lines(r"status on (\S+)")
        (self.url,) = self._collector.await_lines(r"serving the journals on ([^?\s]+)")

    @property
    def journal(self) -> Path:
        """The journal's folder."""
        return self.disk / "journal"

    def lose(self) -> None:
        """Lose the machine, with its disk."""
        self.kill()
        shutil.rmtree(self.disk)

    def kill(self) -> None:
        """Kill the collector."""
        if self._collector is not None:
            self._collector.kill()

    def end(self) -> int:
        """Ask the collector to end, and return its exit code."""
        assert self._collector is not None
        return self._collector.end()

    def status(self) -> dict[str, dict[str, Any]]:
        """Return the status of each feed."""
        with urlopen(f"{self._page.rstrip('/')}/status", timeout=SECONDS) as answer:
            return {feed["name"]: feed for feed in json.load(answer)["feeds"]}

    def await_state(self, state: str) -> None:
        """Wait until all feeds are in a state."""
        until(lambda: {feed["state"] for feed in self.status().values()} == {state}, f"not yet {state}")

    def audit(self, feed: Feed) -> str | None:
        """Compare a log with what the publisher has sent; return a message if they differ."""
        command = [sys.executable, "-m", "weirpool", "audit", self._publisher.url(feed), "lab.items"]
        command += ["--journal", str(self.journal), "--source", feed.name, "--json"]
        if feed.transport == "tls":
            command += ["--cafile", f"{self._publisher.certificates.folder}/ca.pem"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)
        return None if done.returncode == 0 else f"{feed.name}: audit: {done.stdout}{done.stderr}"

    def log(self) -> str:
        """Return the end of what the collector has said."""
        assert self._collector is not None
        return self._collector.log.read_text()[-1000:]
