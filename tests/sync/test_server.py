from __future__ import annotations

import gc
import os
import threading

import pytest

import weirpool.sync
from tests.sync.served import Watch, service_of
from weirpool import ConnectError, LocalError


def test_server_listens_until_its_block_ends(watch: Watch) -> None:
    with weirpool.sync.serve(service_of(watch), "rsocket+tcp://127.0.0.1:0") as server:
        [url] = server.urls
        with weirpool.sync.connect(url) as peer:
            peer.call("echo")
            assert (server.connections, len(server.peers), server.tapped) == (1, 1, False)
            assert server.metrics().connections >= 1
            assert url in repr(server)
    with pytest.raises(ConnectError):
        weirpool.sync.connect(url)


def test_serve_forever_ends_when_the_server_is_closed(watch: Watch) -> None:
    server = weirpool.sync.serve(service_of(watch), "rsocket+memory://forever")
    threads = [threading.Thread(target=server.serve_forever), threading.Thread(target=server.close)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)
    assert "closed" in repr(server)


def test_unclosed_server_warns_and_stops_listening(watch: Watch) -> None:
    server = weirpool.sync.serve(service_of(watch), "rsocket+memory://garbage")
    with pytest.warns(ResourceWarning, match="was not closed"):
        del server
        gc.collect()
    # The name is free again.
    weirpool.sync.serve(service_of(watch), "rsocket+memory://garbage").close()


def test_server_without_a_url_is_refused(watch: Watch) -> None:
    with pytest.raises(LocalError, match="at least one URL"):
        weirpool.sync.serve(service_of(watch))


def test_listening_sockets_are_handed_over(watch: Watch) -> None:
    with weirpool.sync.serve(service_of(watch), "rsocket+tcp://127.0.0.1:0") as server:
        urls, descriptors = server.hand_over()
        assert len(descriptors) == 1 and urls[0].partition("?")[0] == server.urls[0]
        os.fstat(descriptors[0])
