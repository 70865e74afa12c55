"""What one request does stays with it: context variables, and exceptions that are not errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

import pytest
import uvloop

import weirpool
from tests.waiting import until
from weirpool import ApplicationError, Items, Payload, Service, current_connection

PLACES = [
    "rsocket+tcp://127.0.0.1:0",
    "rsocket+ws://127.0.0.1:0/feed",
    "rsocket+memory://isolated",
    "river+tcp://127.0.0.1:0",
    "reactive-streams+tcp://127.0.0.1:0",
]
LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]
KINDS = ("call", "fire", "stream", "upload", "channel")
HOW = ("plain", "coroutine", "later", "generator", "asynchronous", "opened")

owner: ContextVar[str] = ContextVar("owner", default="nobody")


class Panic(BaseException):
    """Like pyo3's PanicException, which polars and pydantic-core raise."""


Work = Callable[[str], None]


def handler(how: str, name: str, work: Work) -> Callable[..., Any]:
    """Return a handler that calls `work` with its name, at each of its steps."""

    def plain(request: Payload, items: Items | None = None) -> bytes:
        work(name)
        return b"1"

    async def coroutine(request: Payload, items: Items | None = None) -> bytes:
        work(name)
        await asyncio.sleep(0)
        work(name)
        return b"1"

    def later(request: Payload, items: Items | None = None) -> Awaitable[bytes]:
        work(name)
        return coroutine(request)

    def generator(request: Payload, items: Items | None = None) -> Iterator[bytes]:
        try:
            for number in range(3):
                work(name)
                yield b"%d" % number
        finally:
            work(name)

    async def asynchronous(request: Payload, items: Items | None = None) -> AsyncIterator[bytes]:
        try:
            for number in range(3):
                work(name)
                yield b"%d" % number
                await asyncio.sleep(0)
        finally:
            work(name)

    async def opened(request: Payload, items: Items | None = None) -> Iterator[bytes]:
        work(name)
        await asyncio.sleep(0)
        return generator(request)

    return locals()[how]  # type: ignore[no-any-return]


def routes() -> Iterator[tuple[str, str]]:
    """Return each kind with each way to write its handler."""
    for kind in KINDS:
        for how in HOW:
            if (how in ("generator", "asynchronous", "opened")) == (kind in ("stream", "channel")):
                yield kind, how


def service_of(work: Work) -> Service:
    service = Service()
    for kind, how in routes():
        name = f"{kind}.{how}"
        getattr(service, kind)(name)(handler(how, name, work))
    return service


async def ask(peer: weirpool.Peer, kind: str, route: str, items: int = 2) -> object:
    """Send a request of any kind; return what it answers."""
    body = b"1"
    if kind == "call":
        return await peer.call(route, body)
    if kind == "fire":
        return await peer.fire(route, body)
    if kind == "upload":
        return await peer.upload(route, body, [body] * items)
    stream = peer.stream(route, body) if kind == "stream" else peer.channel(route, body, [body] * items)
    return [item.data async for item in stream]


@asynccontextmanager
async def serving(url: str, service: Service) -> AsyncIterator[weirpool.Peer]:
    async with weirpool.serve(service, url) as server, weirpool.connect(server.urls[0]) as peer:
        yield peer


def asked(url: str) -> list[tuple[str, str]]:
    """Return the routes whose kind the protocol has."""
    lacks = {"river": ("fire",), "reactive-streams": ("fire", "upload", "channel")}.get(url.partition("+")[0], ())
    return [(kind, how) for kind, how in routes() if kind not in lacks]


def play(main: Coroutine[Any, Any, None], new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(60):
            await main

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(limited())


# Context variables. THREATS 90, RS3.


@pytest.mark.parametrize("new_loop", LOOPS)
@pytest.mark.parametrize("url", PLACES)
def test_request_sees_no_variables_of_another(url: str, new_loop: Any) -> None:
    begun: set[str] = set()
    wrong: list[tuple[str, str]] = []

    def work(name: str) -> None:
        current_connection()
        expected = name if name in begun else "nobody"
        if owner.get() != expected:
            wrong.append((name, owner.get()))
        begun.add(name)
        owner.set(name)

    async def main() -> None:
        async with serving(url, service_of(work)) as peer:
            owner.set("the client")
            for kind, how in asked(url):
                await ask(peer, kind, f"{kind}.{how}")
            await until(lambda: len(begun) == len(asked(url)))

    play(main(), new_loop)
    assert wrong == []


async def test_all_requests_of_one_batch_have_contexts_of_their_own() -> None:
    seen: list[str] = []
    service = Service()

    @service.call("swap")
    def swap(request: Payload) -> bytes:
        seen.append(owner.get())
        owner.set(bytes(request.data).decode())
        return b""

    async with serving(PLACES[0], service) as peer:
        await asyncio.gather(*(peer.call("swap", b"%d" % number) for number in range(100)))
    assert seen == ["nobody"] * 100


async def test_push_handler_has_a_context_of_its_own() -> None:
    seen: list[str] = []
    service = Service()

    @service.push
    def push(metadata: bytes) -> None:
        current_connection()
        seen.append(owner.get())
        owner.set("a push")

    async with serving(PLACES[0], service) as peer:
        await peer.push(b"1")
        await peer.push(b"2")
        await until(lambda: len(seen) == 2)
    assert seen == ["nobody", "nobody"]


@pytest.mark.parametrize("url", PLACES[:3])
async def test_acceptor_may_set_variables_for_the_connection(url: str) -> None:
    service = service_of(lambda name: None)
    service.call("owner")(lambda request: owner.get())

    def accept(setup: weirpool.Setup) -> None:
        owner.set("an accepted client")

    async with weirpool.serve(service, url, acceptor=accept) as server, weirpool.connect(server.urls[0]) as peer:
        assert (await peer.call("owner")).data == b"an accepted client"
        assert (await peer.call("owner")).data == b"an accepted client"
    assert owner.get() == "nobody"


@pytest.mark.parametrize("url", PLACES[:4])
async def test_source_of_a_request_runs_in_the_context_of_its_caller(url: str) -> None:
    wrong: list[str] = []

    def items(name: str) -> Iterator[bytes]:
        for _ in range(300):
            if owner.get() != name:
                wrong.append(owner.get())
            yield b"1"
            owner.set("changed")
            name = "changed"

    service = Service()

    @service.upload("t.count")
    async def count(request: Payload, uploaded: Items) -> bytes:
        return b"%d" % len([item async for item in uploaded])

    async def one(name: str) -> None:
        owner.set(name)
        await peer.upload("t.count", b"1", items(name))
        assert owner.get() == name

    async with serving(url, service) as peer:
        await asyncio.gather(one("a"), one("b"))
    assert wrong == []


# BaseException. THREATS 90, RS5.


@pytest.mark.parametrize("new_loop", LOOPS)
@pytest.mark.parametrize("url", PLACES)
@pytest.mark.parametrize("error", [Panic, GeneratorExit, SystemExit, KeyboardInterrupt])
def test_base_exception_costs_its_own_stream(
    url: str, new_loop: Any, error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    def work(name: str) -> None:
        raise error("a secret")

    service = service_of(work)
    released = asyncio.Event()
    waiting = asyncio.Event()

    @service.call("t.slow")
    async def slow(request: Payload) -> bytes:
        waiting.set()
        await released.wait()
        return b"1"

    async def main() -> None:
        async with serving(url, service) as peer:
            innocent = asyncio.ensure_future(peer.call("t.slow", b"1"))
            await waiting.wait()
            for kind, how in asked(url):
                caplog.clear()
                if kind == "fire":
                    await ask(peer, kind, f"{kind}.{how}")
                else:
                    with pytest.raises(ApplicationError) as raised:
                        await ask(peer, kind, f"{kind}.{how}")
                    assert "secret" not in str(raised.value)
                await until(lambda: bool(caplog.records))
                (record,) = caplog.records
                assert record.getMessage() == f"the {kind} handler '{kind}.{how}' failed"
                assert record.exc_info is not None and isinstance(record.exc_info[1], error)
            released.set()
            assert (await innocent).data == b"1"

    play(main(), new_loop)


async def test_base_exception_of_a_push_handler_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    service = service_of(lambda name: None)

    @service.push
    def push(metadata: bytes) -> None:
        raise Panic("boom")

    async with serving(PLACES[0], service) as peer:
        await peer.push(b"1")
        await peer.call("call.plain")
    assert [record.getMessage() for record in caplog.records] == ["the push handler failed"]


@pytest.mark.parametrize(
    ("url", "code"),
    [
        (PLACES[2], 0x301),
        ("reactivesocket-0.0+memory://isolated", 0x301),
        ("reactive-streams+memory://isolated", 0x201),
        ("river+memory://isolated", object()),
    ],
)
async def test_error_that_cannot_be_sent_costs_its_own_stream(
    url: str, code: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def work(name: str) -> None:
        error: Any = ApplicationError(0x301, "a secret")
        error.code, error.data, error.message = code, object(), object()
        raise error

    async with serving(url, service_of(work)) as peer:
        for kind, how in asked(url):
            if kind in ("call", "stream"):
                caplog.clear()
                with pytest.raises(ApplicationError):
                    await ask(peer, kind, f"{kind}.{how}")
                (record,) = caplog.records
                assert "failed, and its error cannot be sent" in record.getMessage()
        assert peer.outstanding == 0


@pytest.mark.parametrize("boom", [GeneratorExit, SystemExit, KeyboardInterrupt])
async def test_base_exception_of_a_source_reaches_its_consumer_as_an_error(boom: type[BaseException]) -> None:
    def items() -> Iterator[bytes]:
        yield b"1"
        raise boom("boom")

    service = Service()

    @service.upload("t.count")
    async def count(request: Payload, uploaded: Items) -> bytes:
        return b"%d" % len([item async for item in uploaded])

    @service.channel("echo")
    async def echo(request: Payload, uploaded: Items) -> AsyncIterator[bytes]:
        async for item in uploaded:
            yield item.data

    async with serving(PLACES[0], service) as peer:
        with pytest.raises(RuntimeError, match=boom.__name__) as raised:
            await peer.upload("t.count", b"1", items())
        assert isinstance(raised.value.__cause__, boom)
        with pytest.raises(RuntimeError, match=boom.__name__):
            [item async for item in peer.channel("echo", b"1", items())]
        assert (await peer.upload("t.count", b"1", [b"2"])).data == b"1"
        assert peer.outstanding == 0


async def test_handler_that_is_canceled_before_its_first_step_is_closed() -> None:
    # A coroutine that is never awaited warns, and warnings are errors.
    async with serving(PLACES[2], service_of(lambda name: None)) as peer:
        call = asyncio.ensure_future(peer.call("call.coroutine", b"1"))
        await until(lambda: peer.outstanding == 1)
        call.cancel()
        await until(lambda: peer.outstanding == 0)
        assert (await peer.call("call.coroutine", b"1")).data == b"1"
