"""Functions of the application in every form: each runs, or is refused before it is used."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import weirpool
from tests.waiting import until
from weirpool import Connection, Kind, LocalError, Payload, Peer, Reconnect, Service, Settings, Setup, Tap
from weirpool.functions import check_plain, is_async, yields
from weirpool.journal.collect import Collector
from weirpool.reactive import from_aiter
from weirpool.serving import serve_journal

PLACE = "rsocket+memory://functions"


class Plain:
    """An object that is called like a plain function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    # Annotated handlers would be typed.
    def __call__(self, *arguments):
        return self.function(*arguments)


class Async(Plain):
    """An object that is called like a coroutine function."""

    async def __call__(self, *arguments):
        await asyncio.sleep(0)
        return self.function(*arguments)


def later(function: Callable[..., Any]) -> Callable[..., Any]:
    async def called(*arguments):
        await asyncio.sleep(0)
        return function(*arguments)

    return called


FORMS: dict[str, Callable[[Callable[..., Any]], Any]] = {
    "a function": lambda function: lambda *arguments: function(*arguments),
    "a coroutine function": later,
    "a partial": partial,
    "a partial of a coroutine function": lambda function: partial(later(function)),
    "an object": Plain,
    "an async object": Async,
    "a partial of an async object": lambda function: partial(Async(function)),
}
ASYNC = [name for name in FORMS if "async" in name or "coroutine" in name]
EACH = pytest.mark.parametrize("form", FORMS)
COROUTINES = pytest.mark.parametrize("form", ASYNC)


@EACH
def test_forms_are_told_apart(form: str) -> None:
    function = FORMS[form](print)
    assert is_async(function) is (form in ASYNC)
    assert not yields(function)
    if form in ASYNC:
        with pytest.raises(LocalError, match="the hook must be a plain function"):
            check_plain(function, "the hook")
    else:
        check_plain(function, "the hook")


def test_generators_are_told_apart() -> None:
    def generator() -> Iterator[int]:
        yield 1

    async def async_generator() -> AsyncIterator[int]:
        yield 1

    class Yielding:
        def __call__(self) -> Iterator[int]:
            yield 1

    for function in (generator, async_generator, partial(generator), Yielding()):
        assert yields(function) and not is_async(function)
        with pytest.raises(LocalError):
            check_plain(function, "it")
    for other in (print, len, [].append, dict, Connection):
        assert not yields(other) and not is_async(other)


# Functions that may be coroutine functions.


@EACH
@pytest.mark.parametrize("typed", [False, True])
async def test_handlers_of_single_items_run(form: str, typed: bool) -> None:
    service, seen = Service(), []
    result: Any = {"n": 1} if typed else b"done"
    # Without annotations, a handler is typed only if it is registered with types.
    answer: Any = lambda request, *items: seen.append(request) or result  # noqa: E731
    schema: dict[str, Any] = {"init": Any, "response": Any} if typed else {}
    service.call("call", **schema)(FORMS[form](answer))
    service.fire("fire", **({"init": Any} if typed else {}))(FORMS[form](answer))
    service.upload("upload", **schema, **({"request": Any} if typed else {}))(FORMS[form](answer))
    settings = Settings(data_mime="application/json")
    async with weirpool.serve(service, PLACE) as server, weirpool.connect(server.urls[0], settings=settings) as peer:
        expected = b'{"n":1}' if typed else b"done"
        assert (await peer.call("call", b"1")).data == expected
        assert (await peer.upload("upload", b"1", [b"2"])).data == expected
        await peer.fire("fire", b"1")
        await until(lambda: len(seen) == 3)


@EACH
async def test_push_handler_runs(form: str) -> None:
    service, seen = Service(), []
    service.push(FORMS[form](seen.append))
    async with weirpool.serve(service, PLACE) as server, weirpool.connect(server.urls[0]) as peer:
        for number in range(50):
            await peer.push(b"%d" % number)
        await until(lambda: len(seen) == 50)
    assert seen == [b"%d" % number for number in range(50)]


@EACH
async def test_acceptor_runs(form: str) -> None:
    seen: list[Setup] = []
    acceptor = FORMS[form](seen.append)
    async with weirpool.serve(Service(), PLACE, acceptor=acceptor) as server:
        async with weirpool.connect(server.urls[0], confirm=True):
            assert len(seen) == 1


@EACH
async def test_interceptor_runs(form: str) -> None:
    service = Service()
    service.call("echo")(lambda request: request)
    service.intercept(FORMS[form](lambda request, next: Payload(b"intercepted")))
    async with weirpool.serve(service, PLACE) as server, weirpool.connect(server.urls[0]) as peer:
        assert (await peer.call("echo", b"")).data == b"intercepted"


@EACH
async def test_on_connect_runs(form: str, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Peer] = []
    reconnect = Reconnect(on_connect=FORMS[form](seen.append))
    async with weirpool.serve(Service(), PLACE) as server, weirpool.connect(server.urls[0], reconnect=reconnect):
        await until(lambda: len(seen) == 1)
        await asyncio.sleep(0)
    assert not caplog.records


@EACH
async def test_validator_of_handshakes_runs(form: str) -> None:
    seen: list[Any] = []
    acceptor = weirpool.handshake(str, FORMS[form](lambda metadata, setup: seen.append(metadata)))
    async with weirpool.serve(Service(), "river+memory://functions", acceptor=acceptor) as server:
        async with weirpool.connect(server.urls[0], setup=b'"me"', confirm=True):
            assert seen == ["me"]


# Functions whose results nobody awaits.


class Watching(Tap):
    """A tap that reports to a database, as its author believes."""

    async def opened(self, connection: Connection) -> None:  # type: ignore[override]
        """Never awaited."""


@pytest.mark.parametrize("tap", [Watching()])
async def test_tap_with_coroutines_is_refused(tap: Tap) -> None:
    with pytest.raises(LocalError, match=r"Watching\.opened must be a plain function"):
        async with weirpool.serve(Service(), PLACE, taps=[tap]):
            pass
    with pytest.raises(LocalError, match=r"Watching\.opened"):
        await weirpool.connect(PLACE, taps=[tap])


@COROUTINES
async def test_other_coroutine_functions_are_refused(form: str, tmp_path: Path) -> None:
    function = FORMS[form](lambda *arguments: True)

    class Policy:
        grant = pick = staticmethod(function)

    policy: Any = Policy()
    for refuse in (
        lambda: Reconnect(retry=function),
        lambda: Settings(lease=policy),
        lambda: weirpool.balance(["rsocket+tcp://a:1", "rsocket+tcp://b:1"], strategy=policy),
        lambda: serve_journal(Service(), tmp_path, authorize=function),
        lambda: Collector("rsocket+tcp://a:1", "r", tmp_path, on_batch=function),
        lambda: weirpool.Deduplicated(tmp_path / "handled", key=function),
    ):
        with pytest.raises(LocalError, match="must be a plain function"):
            refuse()
    async with weirpool.serve(Service(), PLACE) as server, weirpool.connect(server.urls[0]) as peer:
        with pytest.raises(LocalError, match="on_push must be a plain function"):
            peer.stream("ticks", on_push=function)


@COROUTINES
async def test_connection_hook_without_its_decorator_is_refused(form: str) -> None:
    @asynccontextmanager
    async def good(connection: Connection) -> AsyncGenerator[None, None]:
        yield

    async def bare(connection: Connection) -> AsyncGenerator[None, None]:
        yield

    for hook in (FORMS[form](lambda connection: None), bare):
        with pytest.raises(LocalError, match=r"needs the decorator contextlib\.asynccontextmanager"):
            async with weirpool.serve(Service(), PLACE, on_connection=hook):  # type: ignore[arg-type]
                pass
        with pytest.raises(LocalError, match="asynccontextmanager"):
            await weirpool.connect(PLACE, on_connection=hook)  # type: ignore[arg-type]
    async with weirpool.serve(Service(), PLACE, on_connection=good) as server:
        await (await weirpool.connect(server.urls[0], on_connection=good)).close()


async def test_subscriber_with_coroutines_is_refused() -> None:
    class Subscriber:
        def on_subscribe(self, subscription: Any) -> None: ...
        async def on_next(self, item: Any) -> None: ...
        def on_error(self, error: Exception) -> None: ...
        def on_complete(self) -> None: ...

    with pytest.raises(LocalError, match=r"Subscriber\.on_next must be a plain function"):
        from_aiter([1]).subscribe(Subscriber())  # type: ignore[arg-type]


def test_handlers_that_yield_are_refused_where_one_result_is_expected() -> None:
    async def many(request: Any) -> AsyncIterator[bytes]:
        yield b""

    service = Service()
    for register in (service.call("r"), service.fire("r"), service.push):
        for handler in (many, partial(many)):
            with pytest.raises(LocalError, match="yields"):
                register(handler)  # type: ignore[operator]
    with pytest.raises(LocalError, match="yields"):
        service.intercept(lambda request, next: None) and service.intercept(partial(_yielding))  # type: ignore[arg-type]
    with pytest.raises(LocalError, match=r"must accept \(metadata\)"):
        service.push(lambda: None)
    assert service.routes() == [] and Kind.CALL


async def _yielding(request: Any, next: Any) -> AsyncIterator[bytes]:
    yield b""
