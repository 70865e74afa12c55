"""A secret of a feed that is in no place where operators, pages and other programs look."""

from __future__ import annotations

import http.client
import logging
import traceback
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import weirpool
from tests.feeds.helpers import config
from tests.feeds.test_feed import running
from tests.journal.publishing import Publisher, numbered
from tests.waiting import until
from weirpool import Metadata, Payload, SetupRejected
from weirpool.cli.framedump import FrameDump
from weirpool.feeds.board import Board
from weirpool.feeds.config import Auth, FeedConfig, Setup
from weirpool.feeds.feed import Feed
from weirpool.feeds.http import listening
from weirpool.feeds.shared import Shared
from weirpool.observe.feed_metrics import exposition

MARK = "geheim-4711"
ASKED = Auth(bearer=MARK)
"""In each request."""
SET_UP = Setup(data=MARK, auth=Auth(user="ada", password=MARK))
"""In the set-up of the connection."""


def refuse(setup: object) -> None:
    raise SetupRejected("who are you?")


def looked_at(feed: Feed) -> str:
    """Return what the pages of a board say of a feed."""
    board = Board()
    board.publish([feed.status()])
    texts = []
    with listening(board, "127.0.0.1", 0, exposition) as url:
        for path in ("/status", "/metrics", "/"):
            connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
            connection.request("GET", path)
            texts.append(connection.getresponse().read().decode())
            connection.close()
    return "\n".join([*texts, repr(feed.status()), repr(feed)])


def marked(folder: Path, url: str) -> FeedConfig:
    headers = {"Authorization": f"Bearer {MARK}"} if "+ws:" in url else {}
    return config(folder, url=url, auth=ASKED, setup=SET_UP, headers=headers)


@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.parametrize("transport", ["tcp", "ws"])
async def test_a_feed_shows_its_secrets_nowhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, transport: str, refused: bool
) -> None:
    caplog.set_level(logging.DEBUG)
    lines: list[str] = []
    publisher = Publisher(*numbered(0, 5), RuntimeError("broken"))
    seen: list[bytes] = []

    def accept(setup: weirpool.Setup) -> None:
        seen.append(setup.payload.data)
        if refused:
            raise SetupRejected("who are you?")

    async with weirpool.serve(
        publisher.service, f"rsocket+{transport}://127.0.0.1:0", acceptor=accept, taps=[FrameDump(lines.append)]
    ) as server:
        feed = Feed("a", marked(tmp_path, server.urls[0]), tmp_path, Shared())
        async with running(feed):
            await until(lambda: bool(feed.status().reason))
            shown = looked_at(feed)
    assert MARK.encode() in seen
    assert lines and '"a"' in shown
    assert MARK not in "\n".join([shown, caplog.text, *lines])


async def test_the_error_of_a_refused_client_has_no_secret() -> None:
    setup = Payload(MARK.encode(), Metadata(auth=weirpool.Bearer(MARK)).encode())
    async with weirpool.serve(weirpool.Service(), "rsocket+tcp://127.0.0.1:0", acceptor=refuse) as server:
        with pytest.raises(SetupRejected) as caught:
            async with weirpool.connect(server.urls[0], setup=setup) as peer:
                await peer.call("echo", MARK.encode())
    error = caught.value
    assert MARK not in "".join([str(error), repr(error), *traceback.format_exception(error)])
