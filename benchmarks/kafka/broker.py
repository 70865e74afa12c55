"""Kafka's broker: one process in KRaft mode, on free loopback ports, with its log in a temporary folder."""

from __future__ import annotations

import base64
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from .programs import KAFKA, Programs

__all__ = ["Broker", "broker", "properties"]

START_SECONDS = 60.0
END_SECONDS = 20.0
POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Broker:
    """A running broker.

    Attributes:
        pid: Its process id.
        address: HOST:PORT for clients.

    """

    pid: int
    address: str


def properties(listener: str, controller: str, log: Path) -> str:
    """Return the settings of a broker that is its own controller; each address is HOST:PORT."""
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{controller}",
        "listeners": f"PLAINTEXT://{listener},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{listener}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": str(log),
        "offsets.topic.replication.factor": "1",
        # Deleted topics leave the disk before the next round.
        "file.delete.delay.ms": "1000",
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


@contextmanager
def broker(programs: Programs, scratch: Path) -> Iterator[Broker]:
    """Run a broker while the block lasts; its files are in `scratch`.

    Raises:
        SystemExit: It did not start.

    """
    listener, controller = (f"127.0.0.1:{port}" for port in _free_ports(2))
    settings = scratch / "server.properties"
    settings.write_text(properties(listener, controller, scratch / "log"))
    identity = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    tool = programs.command("kafka.tools.StorageTool", (), scratch)
    format_log = [*tool, "format", "--cluster-id", identity, "--config", str(settings)]
    subprocess.run(format_log, check=True, stdout=subprocess.DEVNULL, timeout=START_SECONDS)
    process = subprocess.Popen([*programs.command("kafka.Kafka", KAFKA, scratch), str(settings)])
    try:
        _wait_until_listening(process, listener)
        yield Broker(process.pid, listener)
    finally:
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(closing(socket.socket())) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _wait_until_listening(process: subprocess.Popen[bytes], address: str) -> None:
    host, _, port = address.partition(":")
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection((host, int(port)), timeout=POLL_SECONDS).close()
        except OSError:
            time.sleep(POLL_SECONDS)
        else:
            return
    raise SystemExit("benchmarks: Kafka's broker did not start")
