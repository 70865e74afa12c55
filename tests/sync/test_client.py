from __future__ import annotations

import asyncio

import pytest

import weirpool
import weirpool.sync
from tests.sync.served import Watch, service_of
from weirpool import ConnectError, LocalError, Reconnect, UrlError


def test_connect_returns_an_open_peer(url: str) -> None:
    peer = weirpool.sync.connect(url)
    assert peer.linked and peer.call("echo", b"x").data == b"x"
    peer.close()
    assert peer.closed and not peer.linked


def test_connect_works_while_an_event_loop_runs(url: str) -> None:
    async def cell() -> bytes:
        with weirpool.sync.connect(url) as peer:
            return peer.call("echo", b"notebook").data

    assert asyncio.run(cell()) == b"notebook"


def test_errors_are_raised_where_it_is_called() -> None:
    with pytest.raises(UrlError):
        weirpool.sync.connect("nonsense")
    with pytest.raises(ConnectError):
        weirpool.sync.connect("rsocket+memory://nobody")
    with pytest.raises(LocalError, match="interceptor"):
        weirpool.sync.connect("rsocket+memory://x", interceptors=[lambda: None])  # type: ignore[list-item, arg-type]


def test_block_that_raises_does_not_wait_for_open_streams(url: str) -> None:
    with pytest.raises(KeyError), weirpool.sync.connect(url) as peer:
        peer.stream("silence").__enter__()
        raise KeyError
    assert peer.closed


def test_peer_reconnects_as_it_is_told(watch: Watch) -> None:
    first = weirpool.sync.serve(service_of(watch), "rsocket+memory://again")
    with weirpool.sync.connect("rsocket+memory://again", reconnect=Reconnect(first_delay=0.001)) as peer:
        assert peer.call("echo", b"1").data == b"1"
        first.close()
        with weirpool.sync.serve(service_of(watch), "rsocket+memory://again"):
            assert peer.call("echo", b"2").data == b"2"
