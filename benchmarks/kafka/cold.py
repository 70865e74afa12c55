"""Programs that users start for a task, from their start to their end: the command of each side that fills a log.

The other tables compare processes that have run for a while. Java has compiled its code by then, which a command that
ends after some seconds never does. Both commands write the same rows to a log that exists already; what they read from
is a file for Kafka's `kafka-console-producer`, and a publisher that is up for `weirpool collect`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

from ..usage import Usage
from .chains import Kafka, Weirpool
from .programs import Programs

__all__ = ["Cold", "Command", "Start", "cold", "run"]

ROWS = 1_000_000
LINE = b"x" * 128 + b"\n"
WEIRPOOL = (sys.executable, "-m", "weirpool")
CONSOLE_PRODUCER = "kafka.tools.ConsoleProducer"
HEAP = ("-Xmx512M",)
"""As Kafka's own scripts start their tools."""


@dataclass(frozen=True)
class Start:
    """A command that has run to its end.

    Attributes:
        seconds: The time that passed.
        cpu: Its CPU seconds, with the start of its runtime.

    """

    seconds: float
    cpu: float


@dataclass
class Command:
    """All rounds of a command.

    Attributes:
        name: The command.
        starts: Its runs.
        peers: The CPU seconds, in each run, of the processes that were up: what it reads from, and its log.

    """

    name: str
    starts: list[Start] = field(default_factory=list)
    peers: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        numbers = (
            median(start.cpu for start in self.starts),
            median(self.peers),
            median(start.seconds for start in self.starts),
        )
        return f"  {self.name:34}" + "".join(f"{number:16.2f}" for number in numbers)


@dataclass
class Cold:
    """The commands of both sides. The first one is ours."""

    commands: list[Command]

    def __str__(self) -> str:
        head = f"  {'':34}{'its CPU s':>16}{'CPU s of others':>16}{'seconds':>16}"
        title = f"a command that fills a log with {ROWS:,} rows, from its start to its end (kafka-cold)"
        return "\n".join([title, head, *map(str, self.commands)])

    def as_object(self) -> dict[str, object]:
        """Return all rounds as a JSON object."""
        rows = [asdict(command) for command in self.commands]
        return {"scenario": "kafka-cold", "unit": "CPU s", "rows": rows}


def cold(ours: Weirpool, theirs: Kafka, programs: Programs, rounds: int, scratch: Path) -> Cold:
    """Run both commands in turns."""
    lines = scratch / "lines"
    lines.write_bytes(LINE * ROWS)
    found = Cold([Command("weirpool collect"), Command("kafka-console-producer")])
    for turn in range(rounds):
        log = f"cold-{turn}"
        publisher = {"source": ours.publisher.process.pid}
        journal = str(ours.journal)
        collect = [*WEIRPOOL, "collect", ours.publisher.ready, "items", "-d", f"{ROWS}"]
        ours.create(log)
        measure(found.commands[0], [*collect, "--journal", journal, "--source", log], os.devnull, publisher)
        ours.delete(log)
        theirs.create(log)
        produce = [*programs.command(CONSOLE_PRODUCER, HEAP, scratch), "--topic", log]
        broker = {"log": theirs.broker.pid}
        measure(found.commands[1], [*produce, "--bootstrap-server", theirs.broker.address], lines, broker)
        theirs.delete(log)
    return found


def measure(found: Command, command: Sequence[str], given: str | Path, peers: dict[str, int]) -> None:
    """Run a command with a file as its input, and store what it took."""
    with Usage(peers) as usage:
        found.starts.append(run(command, given))
    found.peers.append(sum(usage.seconds().values()))


def run(command: Sequence[str], given: str | Path) -> Start:
    """Run a command with a file as its input, and return what it took.

    Raises:
        SystemExit: It failed.

    """
    begun = time.perf_counter()
    with open(given, "rb") as source:
        process = subprocess.Popen(command, stdin=source, stdout=subprocess.DEVNULL)
    # Not by `wait`: it does not tell what a process has used.
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"benchmarks: {command[0]} failed with {process.returncode}")
    return Start(time.perf_counter() - begun, used.ru_utime + used.ru_stime)
