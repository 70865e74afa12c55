from __future__ import annotations

import gc
import inspect
import threading
from collections.abc import Callable
from math import inf

import pytest

import weirpool
import weirpool.sync
from tests.sync.served import Watch
from weirpool import ApplicationError, LocalError, Payload, SessionError, Settings
from weirpool.sync import Peer

# Those of a collector, and of code within an event loop.
NOT_BLOCKING = {
    "Peer": {"adopt", "checkpoint", "commit", "detach", "secret"},
    "Balancer": {"adopt", "checkpoint", "commit", "detach", "secret"},
    "Stream": {
        "adopted",
        "arrival",
        "conversion",
        "end",
        "next_batch",
        "next_items",
        "pause",
        "report_errors",
        "resume",
        "take",
        "waiter",
    },
    "TypedPeer": set(),
    "TypedStream": {"conversion", "decode", "named"},
    "Server": {"arrived", "evicted", "lost"},
}


@pytest.mark.parametrize("name", NOT_BLOCKING)
def test_every_public_name_has_its_twin_with_the_same_parameters(name: str) -> None:
    twin = getattr(weirpool.sync, name)
    public = {key for key in dir(getattr(weirpool, name)) if not key.startswith("_")} - NOT_BLOCKING[name]
    own = {"reader", "raw"} if name.endswith("Stream") else set()
    assert {key for key in dir(twin) if not key.startswith("_")} - own == public - own
    for key in sorted(public - own):
        method = getattr(getattr(weirpool, name), key)
        if inspect.isroutine(method):
            assert parameters(getattr(twin, key)) == parameters(method), key


@pytest.mark.parametrize("name", ["balance", "connect", "run", "serve", "typed"])
def test_every_function_has_its_twin_with_the_same_parameters(name: str) -> None:
    assert parameters(getattr(weirpool.sync, name)) == parameters(getattr(weirpool, name))


def parameters(function: Callable[..., object]) -> list[tuple[str, object, object]]:
    found = inspect.signature(function).parameters.values()
    return [(each.name, each.kind, each.default) for each in found if each.name != "timeout"]


def test_calls_return_responses_and_raise_errors(peer: Peer) -> None:
    assert peer.call("echo", b"hi") == peer.call("echo", "hi") == peer.call("echo", Payload(b"hi")) == Payload(b"hi")
    with pytest.raises(ApplicationError, match="not today"):
        peer.call("fail")


def test_fires_and_pushes_are_sent_in_order(peer: Peer, watch: Watch) -> None:
    peer.fire("note", b"one")
    peer.push(b"two")
    peer.call("echo")
    assert (watch.fired, watch.pushed) == ([b"one"], [b"two"])


def test_upload_and_channel_take_plain_iterables(peer: Peer) -> None:
    assert peer.upload("sum", b"", (b"%d" % number for number in range(1_000))).data == b"499500"
    assert peer.upload("sum", b"", [b"1", "2", Payload(b"3")]).data == b"6"
    with peer.channel("back", b"", iter([b"a", b"b"])) as items:
        assert [item.data for item in items] == [b"a", b"b"]


def test_timeout_of_a_call_cancels_it(peer: Peer, watch: Watch) -> None:
    with pytest.raises(TimeoutError, match=r"call 'never' took more than 0\.01 s"):
        peer.call("never", timeout=0.01)
    # The server is told, unless the call was not sent yet.
    assert watch.canceled.wait(10) or not watch.began.is_set()
    assert peer.call("echo", b"on").data == b"on"


def test_timeout_of_the_peer_applies_unless_a_request_has_its_own(url: str) -> None:
    with weirpool.sync.connect(url, timeout=0.01) as peer:
        with pytest.raises(TimeoutError):
            peer.call("never")
        assert peer.call("echo", b"x", timeout=inf).data == b"x"
        with pytest.raises(TimeoutError, match="the next item of stream 'silence'"):
            list(peer.stream("silence"))


def test_timeout_of_connecting_is_raised() -> None:
    # Nobody accepts: the queue of this socket is as long as the system makes it, and no set-up is answered.
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        with pytest.raises(TimeoutError, match="connecting to"):
            weirpool.sync.connect(f"rsocket+tcp://127.0.0.1:{silent.getsockname()[1]}", confirm=True, timeout=0.05)


def test_many_threads_use_one_peer(peer: Peer) -> None:
    found: dict[int, list[bytes]] = {}

    def work(number: int) -> None:
        answers = [peer.call("echo", b"%d" % number).data for _ in range(20)]
        answers += [item.data for item in peer.stream("count", b"%d" % number)]
        answers.append(peer.upload("sum", b"", (b"1" for _ in range(number))).data)
        found[number] = answers

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {
        number: [b"%d" % number] * 20 + [b"%d" % each for each in range(number)] + [b"%d" % number]
        for number in range(8)
    }


def test_closing_in_another_thread_fails_requests_that_wait(url: str, watch: Watch) -> None:
    peer = weirpool.sync.connect(url)
    errors: list[BaseException] = []

    def call() -> None:
        try:
            peer.call("never")
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    assert watch.began.wait(10)
    peer.close(0)
    thread.join()
    assert [type(error) for error in errors] == [SessionError]


def test_peers_and_streams_close_in_any_order(url: str) -> None:
    peer = weirpool.sync.connect(url)
    stream = peer.stream("silence").__enter__()
    peer.close(0)
    peer.close()
    stream.__exit__(None, None, None)
    assert peer.closed and stream.over and not peer.linked
    with pytest.raises(SessionError, match="the connection was closed"):
        peer.call("echo")


def test_unclosed_peer_warns_and_closes_its_connection(url: str) -> None:
    peer = weirpool.sync.connect(url)
    raw = peer._raw
    with pytest.warns(ResourceWarning, match="was not closed; use it as a context manager, or call close"):
        del peer
        gc.collect()
    weirpool.sync.run(raw.close())
    assert raw.closed


def test_stream_keeps_its_peer_open(url: str) -> None:
    stream = weirpool.sync.connect(url).stream("count", b"3")
    with stream as items:
        assert len(list(items)) == 3
    stream._owner.close()  # type: ignore[attr-defined]


def test_peer_tells_what_it_is(peer: Peer, url: str) -> None:
    assert url.partition("+")[2] in repr(peer)
    assert (peer.linked, peer.closed, peer.outstanding, peer.data_mime) == (True, False, 0, "application/json")
    peer.reset_budget()


def test_wrong_arguments_are_refused_at_once(peer: Peer) -> None:
    with pytest.raises(LocalError, match="a source of items"):
        peer.upload("sum", b"", b"not a source")
    with pytest.raises(LocalError, match="credit is 0"):
        peer.stream("count", b"1", credit=0)


def test_handlers_of_a_client_answer_the_server(watch: Watch) -> None:
    service = weirpool.Service()

    @service.call("name")
    def name(request: Payload) -> bytes:
        return b"client"

    with weirpool.sync.serve(weirpool.Service(), "rsocket+tcp://127.0.0.1:0") as server:
        with weirpool.sync.connect(server.urls[0], service=service, settings=Settings()):
            [client] = server.peers
            assert client.call("name").data == b"client"
