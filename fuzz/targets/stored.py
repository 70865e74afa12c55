"""Sessions on disk: logs, and checkpoints of clients. The first byte of an input selects the protocol."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.builds import Build, load
from tests.river.peers import Duo

from fuzz.outcomes import attempt
from weirpool.checkpoints import split
from weirpool.kinds import Kind

PROTOCOLS: Final = ("rsocket", "reactivesocket-0.2", "river", "river?codec=msgpack")
SECRET: Final = b"secret of sixteen"


def seeds() -> Iterator[bytes]:
    """Yield checkpoints of sessions with open streams."""
    build = load("plain")
    for number, protocol in enumerate(PROTOCOLS[:2]):
        # What receives a seed must not run with this build's imports.
        with build.active():
            public, private = _of_rsocket(build, protocol)
        yield bytes((number,)) + len(public).to_bytes(2, "big") + public + private
    for number, codec in ((2, "json"), (3, "msgpack")):
        duo = Duo(codec)
        ours = duo.client.open(Kind.STREAM, "demo.count", duo.payload({}), 5)
        duo.client.open(Kind.CALL, "demo.add", duo.payload({"n": 1}))
        duo.drive()
        public, private = split(duo.client.checkpoint(ours, 3) or b"")
        yield bytes((number,)) + len(public).to_bytes(2, "big") + public + private


def _of_rsocket(build: Build, protocol: str) -> tuple[bytes, bytes]:
    kinds, payload = build.module("weirpool.kinds").Kind, build.module("weirpool.payload").Payload
    session: Any = _start(build, protocol, None)
    session.link_up(1.0)
    stream = session.open(kinds.STREAM, "a", payload(b"q"), 5)
    session.open(kinds.CALL, "b", payload(b"long" * 40))
    public, private = build.module("weirpool.checkpoints").split(session.checkpoint(stream, 3))
    return public, private


def outcome(build: Build, data: bytes) -> object:
    """Return the checkpoint of the restored session, its first output, and the records of a log."""
    which, content = PROTOCOLS[data[0] % 4 if data else 0], data[1:]
    return _restored(build, which, content), _records(build, content)


def _restored(build: Build, protocol: str, data: bytes) -> object:
    end = 2 + int.from_bytes(data[:2], "big")
    checkpoint = build.module("weirpool.checkpoints").join(data[2:end], data[end:])
    with build.active():
        session = attempt(build, _start, build, protocol, checkpoint)
        if isinstance(session, tuple):
            return session
        session.link_up(1.0)
        sent = b"".join(session.take_output())
        return sent, session.streams(), session.checkpoint(0, 0)


def _start(build: Build, protocol: str, checkpoint: bytes | None) -> object:
    protocol, _, codec = protocol.partition("?codec=")
    settings = build.module("weirpool.settings").Settings(resume=protocol != "river", fragment_bytes=64)
    options = {"codec": codec} if codec else {}
    return build.module("weirpool.protocols").client_session(
        protocol, settings, random=bytes(32), checkpoint=checkpoint, secret=SECRET, options=options
    )


def _records(build: Build, data: bytes) -> object:
    log = build.module("weirpool.store.log")
    try:
        return log.split(data), log.split(log.MAGIC + log.frame(data) + log.frame(b"") + data)
    except ValueError as error:
        return str(error)
