"""What a collector keeps and says holds no credential: neither that of its session nor those of its request."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.hostile.cutting import Relay
from tests.journal.publishing import RIVER_ROUTE, ROUTE, Publisher, collecting, gaps, numbered, rows
from tests.traces import holders, traces
from tests.waiting import until
from weirpool import Bearer, Metadata, Settings, Simple
from weirpool.cli.main import run
from weirpool.journal import Journal, Request, collect, progress
from weirpool.journal import secret as secrets
from weirpool.journal.collect import Collector
from weirpool.journal.feedlog import FeedLog, State
from weirpool.journal.layout import SECRET, log_folder
from weirpool.rsocket.dialect import DIALECTS
from weirpool.spark.driver import SourceDriver
from weirpool.spark.offsets import Offset
from weirpool.spark.options import SourceOptions
from weirpool.urls import fitting
from weirpool.wire.framing import Deframer, deframer, framed
from weirpool.wire.rsocket.frames import FrameType

pytestmark = pytest.mark.usefixtures("no_waiting")

PASSWORD = "correct-horse-battery-staple"
BEARER = "eyJhbGciOiJub25lIn0.bearer"
LOGIN = {"user": "ada", "password": PASSWORD}
PATIENT = Settings(session_grace=600)
"""Of a publisher that waits for its client on a busy machine."""
BOTH = Metadata(auth=Bearer(BEARER), entries=[("text/plain", PASSWORD.encode())])


@dataclass(frozen=True)
class Feed:
    """A request with credentials in it, over one protocol."""

    protocol: str
    route: str = ROUTE
    options: str = ""
    data: bytes = json.dumps(LOGIN).encode()
    metadata: bytes | None = None
    resumes: bool = True
    asked: str = ROUTE
    item: bytes = b""

    def collector(self, url: str, journal: Path) -> Collector:
        return Collector(
            url,
            self.asked,
            journal,
            source=ROUTE,
            data=self.data,
            metadata=self.metadata,
            request=Request(self.route, self.data, None, url),
        )


FEEDS = {
    "rsocket, bearer": Feed("rsocket", metadata=BOTH.addressed(ROUTE), asked=""),
    "rsocket, simple": Feed("rsocket", metadata=Metadata(auth=Simple("ada", PASSWORD)).addressed(ROUTE), asked=""),
    "reactivesocket-0.2": Feed("reactivesocket-0.2"),
    "reactivesocket-0.0": Feed("reactivesocket-0.0", resumes=False),
    "reactive-streams": Feed("reactive-streams", resumes=False),
    "river-json": Feed("river", RIVER_ROUTE, asked=RIVER_ROUTE),
    "river-msgpack": Feed(
        "river", RIVER_ROUTE, "?codec=msgpack", msgspec.msgpack.encode(LOGIN), asked=RIVER_ROUTE, item=b"\xa3"
    ),
}


class Silent(Relay):
    """A relay whose clients never hear what their publisher has: they keep all that they have said."""

    def __init__(self, url: str, feed: Feed) -> None:
        super().__init__(url)
        self._feed = feed

    async def _pass(self, link: Any, source: Any, sink: Any) -> None:
        answers = sink is link[0]
        await super()._pass(link, Changed(source, *unconfirming(self._feed)) if answers else source, sink)


class Changed:
    """A reader whose messages are changed on the way."""

    def __init__(self, reader: asyncio.StreamReader, cutter: Deframer, change: Callable[[bytes], bytes]) -> None:
        self._reader = reader
        self._cutter = cutter
        self._change = change

    async def read(self, size: int) -> bytes:
        changed: list[bytes] = []
        while not any(changed):
            data = await self._reader.read(size)
            if not data:
                break
            self._cutter.feed(data)
            while self._cutter.next():
                changed.append(self._change(self._cutter.buffer[self._cutter.start : self._cutter.end]))
        return b"".join(changed)


def unconfirming(feed: Feed) -> tuple[Deframer, Callable[[bytes], bytes]]:
    """Return what cuts a publisher's bytes into messages, and what takes from these the news of what it has."""
    if feed.protocol == "river":
        codec: Any = msgspec.msgpack if "msgpack" in feed.options else msgspec.json
        return deframer(1 << 20), lambda body: framed(codec.encode(codec.decode(body) | {"ack": 0}))
    frames = DIALECTS[{"rsocket": "rsocket-1.0"}.get(feed.protocol, feed.protocol)].codec()

    def change(body: bytes) -> bytes:
        frame = frames.decode(body, 0, len(body))
        return b"" if frame.type == FrameType.KEEPALIVE else frames.frame(frame)

    return Deframer(frames.prefix_bytes, min_frame_bytes=frames.header_bytes), change


def listed(journal: Path, printed: pytest.CaptureFixture[str]) -> bytes:
    """Return what `weirpool journal` prints of a journal."""
    for verb in ("ls", "verify"):
        with pytest.raises(SystemExit):
            run(["journal", verb, str(journal), "--json"])
    found = printed.readouterr()
    assert ROUTE in found.out
    return (found.out + found.err).encode()


def offset(journal: Path) -> bytes:
    """Return the offset that Spark keeps of all that is in a journal."""
    driver = SourceDriver(SourceOptions.parse({"journal": str(journal)}))
    end = driver.advance(Offset("earliest"), (None, None))
    assert end is not None
    driver.stop()
    return json.dumps(end.json()).encode()


@pytest.fixture
def tokens(monkeypatch: pytest.MonkeyPatch) -> set[bytes]:
    """The secrets of all sessions that collectors begin."""
    found: set[bytes] = set()
    begin = FeedLog.begin

    def noting(log: FeedLog, token: bytes) -> State:
        found.update([token] if token else [])
        return begin(log, token)

    monkeypatch.setattr(FeedLog, "begin", noting)
    return found


@pytest.mark.parametrize(
    ("name", "silent"),
    # Where sessions are not resumed, nothing is kept until it is confirmed.
    [(name, silent) for name, feed in FEEDS.items() for silent in ([False, True] if feed.resumes else [False])],
)
async def test_no_credential_is_in_a_file_that_people_copy(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    tokens: set[bytes],
    name: str,
    silent: bool,
) -> None:
    # THREATS 100
    feed = FEEDS[name]
    journal = tmp_path / "journal"
    monkeypatch.setattr(progress, "FIRST_WINDOW", 8)
    caplog.set_level(logging.DEBUG)
    released = asyncio.Event()
    first, second = ([feed.item + item for item in numbered(*span, 2)] for span in ((256, 296), (296, 336)))
    publisher = Publisher(*first, released, *second)
    folder = log_folder(journal, ROUTE)
    known = [PASSWORD.encode(), BEARER.encode()]
    url = f"{feed.protocol}+tcp://127.0.0.1:0{feed.options}"
    async with publisher.serve(fitting(PATIENT, url, serving=True), url) as server:
        async with Silent(server.urls[0], feed) as relay:
            collector = feed.collector(relay.url if silent else server.urls[0], journal)
            async with collecting(collector):
                # Every batch, the first one included, is recorded while the request waits to be confirmed.
                await until(lambda: collector.progress.position == 40)
                told = [repr(collector.progress).encode()]
        known += tokens
        assert bool(tokens) == feed.resumes
        if silent:
            # It was kept, then, where nobody looks.
            assert holders(folder, *known[:2]) == {SECRET}
        assert holders(journal, *known) <= {SECRET}
        told += [listed(journal, capsys), offset(journal)]
        copy = tmp_path / "copy"
        shutil.copytree(journal, copy, ignore=shutil.ignore_patterns(SECRET))
        assert (rows(copy), holders(copy, *known)) == (first, set())
        assert not Journal(copy).verify()[ROUTE].problems
        collector = feed.collector(server.urls[0], journal)
        released.set()
        if feed.resumes:
            await collector.run()
            assert (rows(journal), gaps(journal)) == (first + second, [])
            # It resumes nothing any more.
            assert holders(journal, *known) == set()
            assert secrets.load(folder) is None
    told.append("\n".join(str(record.__dict__) for record in caplog.records).encode())
    assert [(secret, text) for secret in known for text in told if any(trace in text for trace in traces(secret))] == []


@pytest.mark.parametrize("name", [name for name, feed in FEEDS.items() if feed.resumes])
async def test_a_request_leaves_the_disk_when_it_is_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    feed = FEEDS[name]
    monkeypatch.setattr(collect, "RENEWAL", 0.0)
    publisher = Publisher(*(feed.item + item for item in numbered(256, 296, 2)), asyncio.Event())
    async with publisher.serve(url=f"{feed.protocol}+memory://publisher{feed.options}") as server:
        collector = feed.collector(server.urls[0], tmp_path)
        async with collecting(collector):
            await until(lambda: collector.progress.position == 40)
            await until(lambda: holders(tmp_path, PASSWORD.encode(), BEARER.encode()) == set())
            assert secrets.load(log_folder(tmp_path, ROUTE)).token  # type: ignore[union-attr]


def test_traces_are_found_wherever_they_begin() -> None:
    secret = PASSWORD.encode()
    for before in range(6):
        text = b"x" * before + secret + b"y"
        for held in (text, text.hex().encode(), b64encode(text)):
            assert any(trace in held for trace in traces(secret)), held
