from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import weirpool
from tests.aio.serving import make_service
from tests.waiting import until
from weirpool import ApplicationError, Kind, LocalError, Next, Payload, Peer, Rejected, Request, SessionClosed
from weirpool.aio.streams import Stream

URL = "rsocket+memory://asked"


@asynccontextmanager
async def asking(*interceptors: Any, seen: list[object] | None = None) -> AsyncIterator[Peer]:
    service = make_service([] if seen is None else seen, asyncio.Event())
    async with weirpool.serve(service, URL), weirpool.connect(URL, interceptors=interceptors) as peer:
        yield peer


async def untouched(request: Request, after: Next) -> Any:
    return await after(request)


async def marked(request: Request, after: Next) -> Any:
    """Mark the results."""
    result = await after(request)
    if request.kind in (Kind.STREAM, Kind.CHANNEL):

        async def each() -> AsyncIterator[Payload]:
            async for item in result:
                yield Payload(b"<" + item.data + b">")

        return each()
    return result if result is None else Payload(b"<" + result.data + b">")


async def test_peer_without_interceptors_uses_the_plain_path() -> None:
    async with asking() as peer:
        assert type(peer) is Peer
        assert type(peer.stream("count")) is Stream
    async with asking(untouched) as peer:
        assert type(peer) is Peer


@pytest.mark.parametrize(("interceptor", "mark"), [(untouched, b"%b"), (marked, b"<%b>")])
async def test_all_kinds_pass_the_interceptors(interceptor: Any, mark: bytes) -> None:
    seen: list[object] = []
    async with asking(interceptor, seen=seen) as peer:
        assert (await peer.call("echo", b"x")).data == mark % b"x"
        await peer.fire("log", b"fired")
        assert (await peer.upload("sum", b"", [b"1", b"2"])).data == mark % b"3"
        async with peer.stream("count", b"2") as items:
            assert [item.data async for item in items] == [mark % b"0", mark % b"1"]
        assert [item.data async for item in peer.stream("count", b"2")] == [mark % b"0", mark % b"1"]
        async with peer.channel("double", b"", [b"1", b"2"]) as items:
            assert [item.data async for item in items] == [mark % b"2", mark % b"4"]
        await until(lambda: b"fired" in seen)


async def test_a_request_may_be_changed() -> None:
    async def change(request: Request, after: Next) -> Any:
        assert request.connection.is_client
        request.route = {"wrong": "count", "add": "sum"}.get(request.route, request.route)
        request.payload = Payload(request.payload.data + b"0")
        if request.items is not None:
            request.items = [*request.items, b"100"]
        return await after(request)

    async with asking(change) as peer:
        assert (await peer.call("echo", b"1")).data == b"10"
        assert len([item async for item in peer.stream("wrong", b"1")]) == 10
        assert (await peer.upload("add", b"", [b"1"])).data == b"101"


async def test_routed_metadata_is_sent_unchanged() -> None:
    from weirpool.rsocket.extensions.metadata import composite, entries, routing
    from weirpool.rsocket.extensions.mimes import ROUTING

    parts = [(ROUTING, routing("echo")), ("text/plain", b"beside")]

    async def route(request: Request, after: Next) -> Any:
        assert not request.routed
        request.payload = Payload(request.payload.data, composite(parts))
        request.routed = True
        return await after(request)

    async with asking(route) as peer:
        answer = await peer.call("overruled", b"x")
        assert (answer.data, entries(answer.metadata or b"")) == (b"x", parts)


async def test_interceptor_can_retry_after_an_error() -> None:
    tried: list[str] = []

    async def again(request: Request, after: Next) -> Any:
        try:
            return await after(request)
        except ApplicationError as error:
            tried.append(error.message)
            request.route = "echo"
            return await after(request)

    async with asking(again) as peer:
        assert (await peer.call("fail", b"x")).data == b"x"
        with pytest.raises(LocalError, match=r"called next\(\) twice"):
            await anext(aiter(asked_twice(peer)))
    assert tried == ["boom"]


async def asked_twice(peer: Peer) -> AsyncIterator[Payload]:
    async def twice(request: Request, after: Next) -> Any:
        await after(request)
        return await after(request)

    async with weirpool.connect(URL, interceptors=[twice]) as other:
        async for item in other.stream("count", b"3"):
            yield item


async def test_interceptor_can_answer_itself() -> None:
    async def cached(request: Request, after: Next) -> Any:
        if request.kind == Kind.STREAM:
            return _items(b"a", b"b")
        return Payload(b"cached")

    async with asking(cached) as peer:
        assert (await peer.call("nobody")).data == b"cached"
        async with peer.stream("nobody") as items:
            assert items.over
            assert [item.data async for item in items] == [b"a", b"b"]


async def _items(*items: bytes) -> AsyncIterator[Payload]:
    for item in items:
        yield Payload(item)


async def test_wrong_results_of_interceptors_raise() -> None:
    async def nothing(request: Request, after: Next) -> Any:
        await after(request)
        return 5

    async with asking(nothing) as peer:
        with pytest.raises(LocalError, match="returned int; it must return the Payload"):
            await peer.call("echo")
        with pytest.raises(LocalError, match="returned int; it must return an async iterable"):
            async with peer.stream("acount", b"1000000", credit=1):
                pass
        # The stream that was opened before is canceled.
        await until(lambda: not peer.outstanding)


async def test_refusing_interceptor_sends_nothing() -> None:
    seen: list[object] = []

    async def refuse(request: Request, after: Next) -> Any:
        raise Rejected(message="not now")

    async with asking(refuse, seen=seen) as peer:
        for ask in (lambda: peer.call("echo"), lambda: peer.fire("log"), lambda: anext(aiter(peer.stream("count")))):
            with pytest.raises(Rejected, match="not now"):
                await ask()
    assert seen == []


async def test_canceling_a_call_reaches_the_interceptor() -> None:
    ended: list[str] = []
    reached = asyncio.Event()

    async def watch(request: Request, after: Next) -> Any:
        try:
            return await after(request)
        finally:
            ended.append("interceptor")

    service = make_service(ended, reached)  # type: ignore[arg-type]
    async with weirpool.serve(service, URL), weirpool.connect(URL, interceptors=[watch]) as peer:
        call = asyncio.create_task(peer.call("never"))
        await reached.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: len(ended) == 2)
    assert ended == ["interceptor", "never ended"]


async def test_exit_closes_wrapped_items() -> None:
    seen: list[object] = []

    async def watch(request: Request, after: Next) -> Any:
        items = await after(request)

        async def each() -> AsyncIterator[Payload]:
            try:
                async for item in items:
                    yield item
            finally:
                seen.append("wrapper")

        return each()

    async with asking(watch, seen=seen) as peer:
        async with peer.stream("acount", b"1000000", credit=2) as items:
            async for _ in items:
                break
            assert [(await anext(aiter(items))).data] == [b"1"]
            assert seen == []
        assert "wrapper" in seen
        await until(lambda: "closed" in seen)
        seen.clear()
        loop = aiter(peer.stream("acount", b"1000000", credit=2))
        await anext(loop)
        await loop.aclose()  # type: ignore[attr-defined]
        assert "wrapper" in seen
        await until(lambda: "closed" in seen)


async def test_batches_are_columns_either_way() -> None:
    async with asking(untouched) as peer, peer.stream("count", b"3") as items:
        batches = [batch async for batch in items.batches()]
        assert [value for batch in batches for value in batch["data"].to_pylist()] == [b"0", b"1", b"2"]
    async with asking(marked) as peer, peer.stream("count", b"5") as items:
        batches = [batch async for batch in items.batches(max_rows=2)]
        assert [value for batch in batches for value in batch["data"].to_pylist()] == [b"<%d>" % n for n in range(5)]
        assert max(batch.num_rows for batch in batches) <= 2


async def test_grant_and_arrival_use_the_plain_stream() -> None:
    async with asking(untouched) as peer, peer.stream("count", b"5", credit=1, manual=True) as items:
        assert await items.arrival()
        items.grant(4)
        assert len([item async for item in items]) == 5
        assert items.stream_id > 0
    async with asking(marked) as peer, peer.stream("count", b"5") as items:
        with pytest.raises(LocalError, match="an interceptor wraps"):
            await items.arrival()


async def test_closed_connection_raises_with_interceptors() -> None:
    async with asking(untouched) as peer:
        await peer.close()
        with pytest.raises(SessionClosed):
            await peer.call("echo")
        with pytest.raises(SessionClosed):
            await anext(aiter(peer.stream("count")))
