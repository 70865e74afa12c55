"""Logs of servers' sessions, which clients resume. The first byte of an input selects the protocol.

The number of records follows; then each record, after its length in two bytes; then what a client says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.builds import Build, load
from tests.sim.stored import Disk, Logs

from fuzz.outcomes import attempt

PROTOCOLS: Final = (("rsocket", {}), ("river", {"codec": "json"}), ("river", {"codec": "msgpack"}))
NAME: Final = "log"
MAX_RECORDS: Final = 16


class OnlyLog(Logs):
    """The one log, whatever its name."""

    def create(self, name: str) -> Any:
        """Return the log if it is new."""
        return super().create(NAME)

    def open(self, name: str) -> Any:
        """Return the log and its records."""
        return super().open(NAME)


def seeds() -> Iterator[bytes]:
    """Yield the logs of servers with open streams, and the first bytes of clients that resume."""
    build = load("plain")
    for number in range(len(PROTOCOLS)):
        with build.active():
            records, said = _recorded(build, number)
        for count in (1, len(records)):
            packed = b"".join(len(record).to_bytes(2, "big") + record for record in records[:count])
            yield bytes((number, count)) + packed + said


def _detector(build: Build, number: int, disk: Disk) -> Any:
    protocol, options = PROTOCOLS[number]
    detector = build.module("weirpool.protocols").detectors(
        protocol, _settings(build, protocol), OnlyLog(disk), options=options
    )()
    detector.link_up(1.0)
    return detector


def _settings(build: Build, protocol: str) -> Any:
    return build.module("weirpool.settings").Settings(resume=protocol == "rsocket", fragment_bytes=64)


def _recorded(build: Build, number: int) -> tuple[list[bytes], bytes]:
    """Return the log of a server that was killed, and the first bytes of its client over another link."""
    protocol, options = PROTOCOLS[number]
    kinds, payload = build.module("weirpool.kinds").Kind, build.module("weirpool.payload").Payload
    disk = Disk()
    client: Any = build.module("weirpool.protocols").client_session(
        protocol, _settings(build, protocol), random=bytes(range(32)), options=options
    )
    client.link_up(1.0)
    server = _detector(build, number, disk).receive(b"".join(client.take_output()), 1.0)
    server.ask_kinds(lambda route: kinds.CHANNEL)
    _drive(client, server)
    for kind in (kinds.CHANNEL, kinds.CHANNEL, kinds.CALL):
        client.open(kind, "a.b", payload(b'"question"' if protocol == "river" and number == 1 else b"\xa1q"), 9)
        _drive(client, server)
    for stream_id in [event.stream_id for event in server.take_events() if hasattr(event, "route")][:2]:
        server.send(stream_id, payload(b"\xa1a" if number != 1 else b'"answer"'))
        _drive(client, server)
    client.link_down(2.0, None)
    client.link_up(2.0)
    return disk.logs[NAME], b"".join(client.take_output())


def _drive(client: Any, server: Any) -> None:
    while there_and_back := (client.take_output(), server.take_output()):
        there, back = map(b"".join, there_and_back)
        if not there and not back:
            return
        server.receive(there, 1.0)
        client.receive(back, 1.0)


def outcome(build: Build, data: bytes) -> object:
    """Return what the restored session says, its events, and its log."""
    number, count = (data[0] % 3, data[1] % MAX_RECORDS) if len(data) > 1 else (0, 0)
    disk, at = Disk(), 2
    disk.logs[NAME] = []
    for _ in range(count):
        end = at + 2 + int.from_bytes(data[at : at + 2], "big")
        disk.logs[NAME].append(data[at + 2 : end])
        at = end
    # Sessions import lazily.
    with build.active():
        detector = _detector(build, number, disk)
        session = attempt(build, detector.receive, data[at:], 2.0)
        if session is None or isinstance(session, tuple):
            return session, detector.farewell
        told = [b"".join(session.take_output()), [type(event).__name__ for event in session.take_events()]]
        session.link_down(3.0, None)
        return told, session.open_streams, disk.logs
