from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

import weirpool
from tests.aio.serving import make_service
from tests.waiting import until
from weirpool import ApplicationError, Connection, Kind, LocalError, Next, Payload, Rejected, Request, Service
from weirpool.aio.intercept import bound, chain

URL = "rsocket+memory://intercepted"


@asynccontextmanager
async def asking(service: Service, **options: Any) -> AsyncIterator[weirpool.Peer]:
    async with weirpool.serve(service, URL), weirpool.connect(URL, **options) as peer:
        yield peer


def intercepted(*interceptors: Any) -> tuple[Service, list[object]]:
    """Return the service of all tests, with interceptors, and the list of what its handlers receive."""
    seen: list[object] = []
    service = make_service(seen, asyncio.Event())
    for interceptor in interceptors:
        service.intercept(interceptor)
    return service, seen


async def test_the_first_is_the_outermost() -> None:
    told: list[str] = []

    def named(name: str) -> Callable[[Request, Next], Any]:
        async def interceptor(request: Request, after: Next) -> Any:
            told.append(f"{name} in")
            result = await after(request)
            told.append(f"{name} out")
            return result

        return interceptor

    service = Service(interceptors=[named("a"), named("b")])
    service.intercept(named("c"))
    service.call("r")(lambda request: told.append("handler"))
    async with asking(service) as peer:
        await peer.call("r")
    assert told == ["a in", "b in", "c in", "handler", "c out", "b out", "a out"]


async def test_request_has_kind_route_and_connection() -> None:
    requests: list[Request] = []

    async def look(request: Request, after: Next) -> Any:
        requests.append(request)
        return await after(request)

    service, seen = intercepted(look)
    async with asking(service, setup="me") as peer:
        assert (await peer.call("echo", b"x", metadata=b"m")).data == b"x"
        await peer.fire("log", b"fired")
        async with peer.stream("count", b"3") as items:
            assert [item.data async for item in items] == [b"0", b"1", b"2"]
        assert (await peer.upload("sum", b"", [b"1", b"2"])).data == b"3"
        async with peer.channel("double", b"", [b"1", b"2"]) as items:
            assert [item.data async for item in items] == [b"2", b"4"]
        await until(lambda: b"fired" in seen)
    kinds = [Kind.CALL, Kind.FIRE, Kind.STREAM, Kind.UPLOAD, Kind.CHANNEL]
    assert [(request.kind, request.route) for request in requests] == list(
        zip(kinds, ["echo", "log", "count", "sum", "double"], strict=True)
    )
    assert requests[0].payload.data == b"x"
    assert b"echo" in (requests[0].payload.metadata or b"")
    assert (requests[0].routed, requests[0].route_beside, repr(requests[0])) == (True, "", "<Request CALL 'echo'>")
    assert [request.items is not None for request in requests] == [False, False, False, True, True]
    (connection,) = {request.connection for request in requests}
    assert (connection.is_client, connection.protocol, connection.setup) == (False, "rsocket", Payload(b"me"))
    assert connection.data_mime == "application/octet-stream"
    assert connection.metadata_mime == "message/x.rsocket.composite-metadata.v0"


async def test_an_interceptor_refuses_requests_of_every_kind() -> None:
    async def refuse(request: Request, after: Next) -> Any:
        raise Rejected(message="who are you?")

    service, seen = intercepted(refuse)
    async with asking(service) as peer:
        for asking_for in (
            lambda: peer.call("echo"),
            lambda: peer.upload("sum", b"", [b"1"]),
            lambda: anext(aiter(peer.stream("count", b"3"))),
            lambda: anext(aiter(peer.channel("double", b"", [b"1"]))),
        ):
            with pytest.raises(Rejected, match="who are you"):
                await asking_for()
        await peer.fire("log", b"fired")
    assert seen == []


async def test_interceptor_can_answer_unknown_routes() -> None:
    async def fallback(request: Request, after: Next) -> Any:
        try:
            return await after(request)
        except Rejected as error:
            if request.kind != Kind.CALL:
                raise
            return f"instead of: {error.message}"

    service, _ = intercepted(fallback)
    async with asking(service) as peer:
        assert (await peer.call("nobody")).data == b"instead of: no call handler is named 'nobody'"
        with pytest.raises(Rejected, match="no stream handler is named 'nobody'"):
            await anext(aiter(peer.stream("nobody")))
        with pytest.raises(Rejected, match="no channel handler is named 'nobody'"):
            await peer.upload("nobody", b"", [])


async def test_errors_of_handlers_pass_through_and_may_be_replaced(caplog: pytest.LogCaptureFixture) -> None:
    async def translate(request: Request, after: Next) -> Any:
        try:
            return await after(request)
        except KeyError as error:
            raise ApplicationError(0x444, "no such thing") from error

    service, _ = intercepted(translate)
    async with asking(service) as peer:
        with pytest.raises(ApplicationError, match="no such thing"):
            await peer.call("bug")
        with pytest.raises(ApplicationError, match="boom"):
            await peer.call("fail")
    assert caplog.records == []


async def test_results_are_payloads_and_may_be_replaced() -> None:
    results: list[object] = []

    async def shout(request: Request, after: Next) -> Any:
        request.payload = Payload(request.payload.data.upper())
        result = await after(request)
        results.append(result)
        return Payload(result.data + b"!") if request.kind != Kind.FIRE else None

    service = Service(interceptors=[shout])
    service.call("bytes")(lambda request: request.data)
    service.call("none")(lambda request: None)
    service.fire("fire")(lambda request: b"dropped")
    async with asking(service) as peer:
        assert (await peer.call("bytes", b"x")).data == b"X!"
        assert (await peer.call("none")).data == b"!"
        await peer.fire("fire")
        await until(lambda: len(results) == 3)
    assert results == [Payload(b"X"), Payload(), None]


async def test_canceling_reaches_interceptor_and_handler() -> None:
    seen: list[object] = []
    reached = asyncio.Event()
    service = make_service(seen, reached)

    @service.intercept
    async def watch(request: Request, after: Next) -> Any:
        try:
            return await after(request)
        except asyncio.CancelledError:
            seen.append("interceptor")
            raise

    async with asking(service) as peer:
        call = asyncio.create_task(peer.call("never"))
        await reached.wait()
        call.cancel()
        await until(lambda: len(seen) == 2)
    assert seen == ["never ended", "interceptor"]


# Items.


def counting(seen: list[object]) -> Callable[[Request, Next], Any]:
    """Return an interceptor that marks each item, and records the end."""

    async def interceptor(request: Request, after: Next) -> Any:
        items = await after(request)

        async def marked() -> AsyncIterator[bytes]:
            try:
                async for item in items:
                    yield b"<" + (item.data if isinstance(item, Payload) else item) + b">"
            finally:
                seen.append("wrapper closed")

        return marked()

    return interceptor


@pytest.mark.parametrize("route", ["count", "acount"])
async def test_items_of_a_stream_may_be_wrapped(route: str) -> None:
    service, seen = intercepted()
    service.intercept(counting(seen))
    async with asking(service) as peer:
        async with peer.stream(route, b"3", credit=1) as items:
            assert [item.data async for item in items] == [b"<0>", b"<1>", b"<2>"]
    assert "wrapper closed" in seen


async def test_items_of_a_channel_may_be_wrapped_both_ways() -> None:
    async def both(request: Request, after: Next) -> Any:
        incoming = request.items

        async def doubled() -> AsyncIterator[Payload]:
            async for item in incoming:
                yield Payload(b"%d" % (2 * int(item.data)))

        request.items = doubled()
        return await after(request)

    service, _ = intercepted(both, counting([]))
    async with asking(service) as peer:
        async with peer.channel("double", b"", [b"1", b"2"]) as items:
            assert [item.data async for item in items] == [b"<4>", b"<8>"]


async def test_exiting_a_stream_closes_wrapper_and_handler() -> None:
    service, seen = intercepted()
    service.intercept(counting(seen))
    async with asking(service) as peer:
        async with peer.stream("acount", b"1000000", credit=2) as items:
            async for _ in items:
                break
        await until(lambda: len(seen) == 2)
    assert seen == ["wrapper closed", "closed"]


async def test_the_source_is_closed_also_where_the_wrapper_stops_early() -> None:
    async def first(request: Request, after: Next) -> Any:
        items = await after(request)

        async def one() -> AsyncIterator[Any]:
            async for item in items:
                yield item
                return

        return one()

    class Endless:
        closed = 0

        def __aiter__(self) -> Endless:
            return self

        async def __anext__(self) -> bytes:
            return b"x"

        async def aclose(self) -> None:
            self.closed += 1

    source = Endless()
    service = Service(interceptors=[first])
    service.stream("s")(lambda request: source)
    async with asking(service) as peer:
        async with peer.stream("s") as items:
            assert [item.data async for item in items] == [b"x"]
        await until(lambda: source.closed == 1)


async def test_unwrapped_items_use_the_plain_path() -> None:
    async def look(request: Request, after: Next) -> Any:
        return await after(request)

    service = Service(interceptors=[look])
    source = iter([b"a"])
    service.stream("s")(lambda request: source)
    handler = bound(service, Connection("rsocket", "", False)).find(Kind.STREAM, "s")
    assert handler is not None
    assert await handler.function(Payload()) is source


async def test_interceptor_without_items_raises(caplog: pytest.LogCaptureFixture) -> None:
    async def wrong(request: Request, after: Next) -> Any:
        await after(request)
        return b"bytes"

    service, _ = intercepted(wrong)
    service.stream("bytes")(lambda request: b"not items")
    async with asking(service) as peer:
        with pytest.raises(ApplicationError):
            await anext(aiter(peer.stream("count", b"1")))
    assert "returned bytes; it must return an async iterable" in caplog.records[0].getMessage()


async def test_wrapped_handler_without_items_fails_the_stream(caplog: pytest.LogCaptureFixture) -> None:
    service = Service(interceptors=[counting([])])
    service.stream("bytes")(lambda request: b"not items")
    async with asking(service) as peer:
        with pytest.raises(ApplicationError):
            await anext(aiter(peer.stream("bytes")))
    assert "not bytes" in caplog.records[0].getMessage()


async def test_items_can_be_requested_one_by_one() -> None:
    async def head(request: Request, after: Next) -> Any:
        items = await after(request)
        first = await anext(items)
        await items.aclose()
        return _each(first)

    async def _each(item: Any) -> AsyncIterator[Any]:
        yield item

    service, seen = intercepted(head)
    async with asking(service) as peer:
        async with peer.stream("acount", b"9") as items:
            assert [item.data async for item in items] == [b"0"]
    assert seen == ["closed"]


# The path without interceptors.


def test_service_without_interceptors_is_called_directly() -> None:
    service = Service()
    assert bound(service, Connection("rsocket", "", False)) is service


def test_pushes_and_routes_are_those_of_the_service() -> None:
    async def look(request: Request, after: Next) -> Any:
        return await after(request)

    pushed: list[bytes] = []
    service = Service(interceptors=[look])
    service.push(pushed.append)
    service.call("r")(lambda request: None)
    around = bound(service, Connection("rsocket", "", False))
    assert around is not service
    around.pushed(b"m")
    assert (pushed, around.routes()) == ([b"m"], [(Kind.CALL, "r")])


async def test_empty_chain_is_its_last_function() -> None:
    async def last(request: Request) -> str:
        return request.route

    assert chain([], last) is last


def test_interceptor_with_other_arguments_is_rejected() -> None:
    async def wrong(request: Request) -> None:
        """Accept too few arguments."""

    with pytest.raises(LocalError, match="must accept"):
        Service(interceptors=[wrong])  # type: ignore[list-item]
    with pytest.raises(LocalError, match="must accept"):
        weirpool.connect(URL, interceptors=[wrong])  # type: ignore[list-item]


async def test_interceptor_cannot_be_added_while_serving() -> None:
    async def late(request: Request, after: Next) -> Any:
        return await after(request)

    service = Service()
    async with asking(service):
        with pytest.raises(LocalError, match="before serve"):
            service.intercept(late)


async def test_bound_service_knows_the_kind_of_a_route() -> None:
    service, _ = intercepted()
    service.call("typed", init=int)(lambda request: None)
    connection = Connection("river", "", False)
    for interceptors in ((), (lambda request, after: after(request),)):
        for interceptor in interceptors:
            service.intercept(interceptor)
        asked = bound(service, connection)
        assert {route: asked.kind_of(route) for _, route in service.routes()} == {
            route: service.kind_of(route) for _, route in service.routes()
        }
        assert asked.kind_of("typed") is Kind.CALL
