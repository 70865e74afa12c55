"""A machine with a disk of its own, which collects feeds and serves its journal to Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from chaos.children import ROOT

from tests.objects.stores import CREDENTIALS
from tests.transports.certificates import Certificates

from .feeds import Feed, Publisher
from .processes import Program

__all__ = ["Machine"]

SECONDS = 120.0
"""How long an answer may take, on a machine that is busy."""


class Machine:
    """The processes that read and write one disk.

    Args:
        disk: The disk's folder, which nobody else sees.
        publisher: The publisher of the feeds.
        store: The URI of the store with sealed segments.
        certificates: Those by which the machine and Spark know each other.
        saboteur: What is wrong with its code; empty: nothing.

    Attributes:
        url: The URL at which Spark reads the journal. It stays the same.

    """

    def __init__(
        self, disk: Path, publisher: Publisher, store: str, certificates: Certificates, saboteur: str = ""
    ) -> None:
        self.disk = disk
        self.url = "rsocket+tls://127.0.0.1:0"
        self._publisher = publisher
        self._certificates = certificates
        self._saboteur = saboteur
        self._programs: list[Program] = []
        disk.mkdir()
        (disk / "feeds.toml").write_text(publisher.file(store))

    @property
    def journal(self) -> Path:
        """The journal's folder."""
        return self.disk / "journal"

    def start(self) -> None:
        """Start everything, for the first time or again."""
        options = f"{self._certificates.server_options}&{self._certificates.client_options}"
        collector = self._start("collector", "collect", "--config", str(self.disk / "feeds.toml"), "--http", "0")
        door = self._start("door", "serve", "tests/cluster/door.py:service", f"{self.url}?{options}")
        self._programs = [collector, door]
        (self._page,) = collector.await_lines(r"status on (\S+)")
        self.url = door.await_lines(r"listening on ([^?\s]+)")[0]

    def _start(self, name: str, *arguments: str) -> Program:
        start = [sys.executable, "-m", "penstock"]
        environment = {**CREDENTIALS, "LAB_JOURNAL": str(self.journal), "PYTHONPATH": str(ROOT)}
        if self._saboteur:
            # Compiled classes cannot be patched.
            environment["PENSTOCK_PURE"] = "1"
            start = [sys.executable, "-m", "tests.cluster.sabotaged", self._saboteur]
        return Program(name, [*start, *arguments], self.disk, environment)

    def kill(self) -> None:
        """Kill all processes at once."""
        for program in self._programs:
            program.kill()

    def end(self) -> list[int]:
        """Ask all processes to end, and return their exit codes."""
        return [program.end() for program in self._programs]

    def status(self) -> dict[str, dict[str, Any]]:
        """Return the status of each feed."""
        with urlopen(f"{self._page.rstrip('/')}/status", timeout=SECONDS) as answer:
            return {feed["name"]: feed for feed in json.load(answer)["feeds"]}

    def audit(self, feed: Feed) -> str | None:
        """Compare a log with what the publisher has sent; return a message if they differ."""
        command = [sys.executable, "-m", "penstock", "audit", self._publisher.url(feed), "lab.items"]
        command += ["--journal", str(self.journal), "--source", feed.name, "--json"]
        if feed.transport == "tls":
            command += ["--cafile", f"{self._publisher.certificates.folder}/ca.pem"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)
        return None if done.returncode == 0 else f"{feed.name}: audit: {done.stdout}{done.stderr}"

    def log(self) -> str:
        """Return the end of what the collector has said."""
        return self._programs[0].log.read_text()[-1000:]
