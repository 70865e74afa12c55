from __future__ import annotations

import asyncio
from typing import Any

import pytest

import weirpool
from tests.aio.serving import world
from tests.waiting import until
from weirpool import (
    ApplicationError,
    Balancer,
    Bearer,
    Kind,
    LocalError,
    Metadata,
    Next,
    Payload,
    Peer,
    Rejected,
    Request,
    SessionClosed,
    Settings,
    connect,
)
from weirpool.aio.connectors import Connector
from weirpool.aio.streams import Stream, StreamRequest


async def test_call_returns_data_and_metadata() -> None:
    async with world() as w:
        answer = await w.peer.call("echo", Payload(b"data", b"extra"))
        assert answer.data == b"data"
        assert answer.metadata is not None and answer.metadata.endswith(b"extra")
        assert (await w.peer.call("later", "text")).data == b"text"


async def test_many_calls_at_once_each_get_their_own_answer() -> None:
    async with world() as w:
        answers = await asyncio.gather(*(w.peer.call("later", b"%d" % i) for i in range(500)))
        assert [answer.data for answer in answers] == [b"%d" % i for i in range(500)]


async def test_errors_of_handlers_reach_the_caller_and_secrets_do_not() -> None:
    # THREATS 46
    async with world() as w:
        with pytest.raises(ApplicationError) as failed:
            await w.peer.call("fail")
        assert (failed.value.code, failed.value.message) == (0x301, "boom")
        with pytest.raises(ApplicationError) as bug:
            await w.peer.call("bug")
        assert bug.value.code == 0x201
        assert "secret" not in str(bug.value)


async def test_an_unknown_route_is_rejected() -> None:
    async with world() as w:
        with pytest.raises(Rejected, match="nobody"):
            await w.peer.call("nobody")


async def test_canceling_a_call_cancels_the_handler() -> None:
    async with world() as w:
        task = asyncio.create_task(w.peer.call("never"))
        await w.reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await w.peer.call("echo")
        assert w.seen == ["never ended"]


async def test_fire_reaches_the_handler() -> None:
    async with world() as w:
        await w.peer.fire("log", b"hello")
        await w.reached.wait()
        assert w.seen == [b"hello"]


async def test_upload_and_channel_take_plain_and_async_sources() -> None:
    async def numbers():
        for number in (b"2", b"3"):
            yield number

    async with world() as w:
        assert (await w.peer.upload("sum", b"", [b"1", b"2"])).data == b"3"
        assert (await w.peer.upload("sum", b"", numbers())).data == b"5"
        async with w.peer.channel("double", b"", numbers()) as answers:
            assert [answer.data async for answer in answers] == [b"4", b"6"]


async def test_large_payloads_travel_in_fragments() -> None:
    async with world(client=Settings(fragment_bytes=1000), server=Settings(fragment_bytes=1000)) as w:
        data = bytes(range(256)) * 4000
        assert (await w.peer.call("echo", data)).data == data


async def test_a_closed_peer_takes_no_calls() -> None:
    async with world() as w:
        await w.peer.close()
        assert w.peer.closed
        with pytest.raises(SessionClosed):
            await w.peer.call("echo")
        with pytest.raises(SessionClosed):
            await w.peer.fire("log")
        assert "closed" in repr(w.peer)


async def test_metadata_entries_are_sent_beside_the_route() -> None:
    async with world() as w:
        more = Metadata(auth=Bearer("secret"), mime="text/plain")
        answer = await w.peer.call("echo", b"x", metadata=more)
        read = Metadata.decode(answer.metadata)
        assert (read.route, read.auth, read.mime) == ("echo", Bearer("secret"), "text/plain")
        await w.peer.call("echo", b"x", metadata=Metadata("echo", auth=Bearer("secret")))
        with pytest.raises(LocalError, match="has route 'other', but the request has 'echo'"):
            await w.peer.call("echo", b"x", metadata=Metadata("other"))
        async with w.peer.stream("count", b"2", metadata=more) as items:
            assert [item.data async for item in items] == [b"0", b"1"]
        await w.peer.fire("log", b"logged", metadata=more)
        await w.reached.wait()
        assert (await w.peer.upload("sum", b"0", [b"1"], metadata=more)).data == b"1"


async def test_outstanding_counts_open_streams() -> None:
    async with world() as w:
        assert w.peer.outstanding == 0
        call = asyncio.ensure_future(w.peer.call("never"))
        await w.reached.wait()
        assert w.peer.outstanding == 1
        call.cancel()
        await asyncio.wait([call])
        assert w.peer.outstanding == 0


# Verbs.


class Asked(Peer):
    """Records its requests."""

    def __init__(self) -> None:
        super().__init__(Connector(Settings()))
        self.noted: list[tuple[Any, ...]] = []

    async def _send(self, *arguments: Any) -> Any:
        self.noted.append(arguments)
        return Payload(b"answer")

    def _stream(self, wanted: StreamRequest) -> Stream:
        self.noted.append(wanted)
        return Stream(self._connector, wanted)


async def test_data_of_all_types_becomes_one_payload() -> None:
    asked = Asked()
    for data in (b"data", "data", Payload(b"data")):
        assert (await asked.call("route", data)).data == b"answer"
        await asked.fire("route", data)
        await asked.upload("route", data, [b"more"])
    ones = [(Kind.CALL, None), (Kind.FIRE, None), (Kind.UPLOAD, [b"more"])]
    assert asked.noted == [(kind, "route", Payload(b"data"), False, outgoing) for kind, outgoing in ones] * 3


def test_stream_arguments_are_passed_on() -> None:
    asked = Asked()
    pushed: list[bytes] = []
    asked.stream("route", b"data", credit=3, manual=True, endless=True, on_push=pushed.append)
    asked.channel("route", b"data", [b"more"], credit=4, manual=True)
    assert asked.noted == [
        StreamRequest(Kind.STREAM, "route", Payload(b"data"), False, 3, True, None, True, pushed.append),
        StreamRequest(Kind.CHANNEL, "route", Payload(b"data"), False, 4, True, [b"more"]),
    ]
    with pytest.raises(LocalError, match="at least 1"):
        asked.stream("route", credit=0)


async def test_metadata_may_contain_the_route() -> None:
    asked = Asked()
    await asked.call("route", b"data", metadata=b"beside")
    await asked.call("route", b"data", metadata=Metadata())
    await asked.call("route", Payload(b"data", b"own"), metadata=b"beside")
    assert asked.noted == [
        (Kind.CALL, "route", Payload(b"data", b"beside"), False, None),
        (Kind.CALL, "route", Payload(b"data", Metadata().addressed("route")), True, None),
        (Kind.CALL, "route", Payload(b"data", b"own"), False, None),
    ]


def test_balancer_has_the_methods_of_a_peer() -> None:
    assert issubclass(Balancer, Peer)
    for name in ("call", "fire", "stream", "channel", "upload"):
        assert getattr(Balancer, name) is getattr(Peer, name)


async def test_a_balancer_has_no_session_of_its_own() -> None:
    balancer = weirpool.balance(["rsocket+memory://nowhere"])
    assert (balancer.outstanding, repr(balancer)) == (0, "<Balancer of 0 nodes>")
    for use in (lambda: balancer.secret, balancer.commit, balancer.adopt, balancer.detach):
        with pytest.raises(LocalError, match="no session of its own"):
            use()


# Sources.


class Broken:
    """A source whose iteration cannot begin."""

    def __iter__(self) -> Any:
        raise ValueError("cannot begin")


@pytest.mark.parametrize("source", [5, b"bytes", "text", Payload(b"payload"), object()])
async def test_source_that_is_not_iterable_is_refused_before_opening(source: Any) -> None:
    async with world() as w:
        with pytest.raises(LocalError, match="a source of items is an iterable"):
            await w.peer.upload("sum", b"1", source)
        with pytest.raises(LocalError, match="a source of items is an iterable"):
            async with w.peer.channel("double", b"1", source):
                pass
        with pytest.raises(LocalError, match="a source of items is an iterable"):
            [item async for item in w.peer.channel("double", b"1", source)]
        assert w.peer.outstanding == 0
        await w.peer.call("echo")
        assert w.seen == []


async def test_upload_without_a_source_is_refused() -> None:
    async with world() as w:
        with pytest.raises(LocalError, match="not NoneType"):
            await w.peer.upload("sum", b"1", None)  # type: ignore[arg-type]
        assert w.peer.outstanding == 0


async def test_interceptor_that_breaks_a_source_opens_nothing() -> None:
    async def breaking(request: Request, after: Next) -> Any:
        request.items = 5
        return await after(request)

    async with world() as w, connect(w.server.urls[0], interceptors=[breaking]) as peer:
        with pytest.raises(LocalError, match="a source of items is an iterable"):
            await peer.upload("sum", b"1", [b"2"])
        with pytest.raises(LocalError, match="a source of items is an iterable"):
            [item async for item in peer.channel("double", b"1", [b"2"])]
        assert peer.outstanding == 0


async def test_source_that_cannot_begin_ends_its_stream() -> None:
    async with world() as w:
        with pytest.raises(ValueError, match="cannot begin"):
            await w.peer.upload("sum", b"1", Broken())
        with pytest.raises(ValueError, match="cannot begin"):
            [item async for item in w.peer.channel("double", b"1", Broken())]
        await until(lambda: w.peer.outstanding == 0)
