from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from tests.aio.fakes import FakeLoop, fake_exchanges
from tests.builds import Build
from tests.waiting import until

STREAM = 2


@pytest.fixture
def exchanges(build: Build) -> Any:
    """Exchanges for handlers that never wait."""
    return fake_exchanges(build, FakeLoop())


def running(build: Build) -> Any:
    return fake_exchanges(build, asyncio.get_running_loop())


def ask(build: Build, exchanges: Any, kind: str, route: str = "r", credit: int = 0, done: bool = True) -> None:
    """Dispatch a request."""
    payload = build.module("weirpool.payload").Payload(b"request")
    kinds = build.module("weirpool.kinds").Kind
    event = build.module("weirpool.events").Requested(STREAM, kinds[kind], route, payload, credit, done)
    exchanges.session.left[STREAM] = credit
    dispatch = build.module("weirpool.aio.dispatch").Dispatch(exchanges, exchanges.service, print)
    dispatch.take([event])


def answered(exchanges: Any) -> list[bytes]:
    """Return the items of responses, each the last one of its stream."""
    sent = exchanges.session.verbs("send")
    assert all(done for *_, done in sent)
    return [data for *_, items, _ in sent for data in items]


# Calls.


@pytest.mark.parametrize(
    ("result", "data"), [(b"bytes", b"bytes"), ("text", b"text"), (memoryview(b"view"), b"view"), (None, b"")]
)
def test_result_of_a_function_is_the_response(build: Build, exchanges: Any, result: object, data: bytes) -> None:
    exchanges.service.call("r")(lambda request: result)
    ask(build, exchanges, "CALL")
    assert answered(exchanges) == [data]
    assert (exchanges.outbound, exchanges.tasks) == ({}, set())


def test_a_payload_is_the_answer_as_it_is(build: Build, exchanges: Any) -> None:
    exchanges.service.call("r")(lambda request: request)
    ask(build, exchanges, "CALL")
    assert answered(exchanges) == [b"request"]


@pytest.mark.parametrize("credit", [0, 1])
def test_call_received_as_stream_respects_credit(build: Build, exchanges: Any, credit: int) -> None:
    exchanges.session.calls_by_streams = True
    exchanges.service.call("r")(lambda request: b"answer")
    ask(build, exchanges, "STREAM", credit=credit)
    assert exchanges.session.items(STREAM) == [b"answer"] * credit
    assert (("complete", STREAM) in exchanges.session.told) is (credit == 1)


async def test_call_received_as_stream_may_be_a_coroutine(build: Build) -> None:
    exchanges = running(build)
    exchanges.session.calls_by_streams = True

    @exchanges.service.call("r")
    async def handler(request):
        await asyncio.sleep(0)
        return b"later"

    ask(build, exchanges, "STREAM", credit=1)
    await until(lambda: ("complete", STREAM) in exchanges.session.told)
    assert exchanges.session.items(STREAM) == [b"later"]


async def test_call_canceled_before_it_starts_is_closed(build: Build) -> None:
    exchanges = running(build)
    exchanges.session.calls_by_streams = True
    called: list[Any] = []

    @exchanges.service.call("r")
    def handler(request):
        called.append(never_begun())
        return called[0]

    async def never_begun() -> bytes:
        return b""

    ask(build, exchanges, "STREAM", credit=1)
    half = exchanges.outbound.pop(STREAM, None)
    if half is not None:
        half.canceled()
    await until(lambda: not exchanges.tasks)
    # A coroutine that was never started would warn, and warnings are errors here.
    assert inspect.getcoroutinestate(called[0]) == inspect.CORO_CLOSED


async def test_result_of_a_coroutine_is_the_response(build: Build) -> None:
    exchanges = running(build)
    released = asyncio.Event()

    @exchanges.service.call("r")
    async def handler(request):
        await released.wait()
        return request

    ask(build, exchanges, "CALL")
    assert STREAM in exchanges.outbound
    released.set()
    await until(lambda: bool(exchanges.ended))
    assert answered(exchanges) == [b"request"]
    assert (exchanges.failed, exchanges.tasks) == ([], set())


@pytest.mark.parametrize("kind", ["CALL", "FIRE", "STREAM", "CHANNEL"])
def test_unknown_route_rejects_the_request(build: Build, exchanges: Any, kind: str) -> None:
    ask(build, exchanges, kind, "nobody" + "x" * 500)
    ((_, stream_id, error),) = exchanges.session.verbs("fail")
    assert stream_id == STREAM
    assert isinstance(error, build.module("weirpool.errors").Rejected)
    assert kind.lower() in str(error) and "'nobodyxxx" in str(error)
    # Only a limited part of the peer's text is repeated.
    assert len(str(error)) < 200


def test_failing_function_fails_only_its_stream(build: Build, exchanges: Any) -> None:
    error = KeyError("a secret")

    @exchanges.service.call("r")
    def handler(request):
        raise error

    ask(build, exchanges, "CALL")
    assert exchanges.failed == [(error, "the call handler 'r'")]
    assert answered(exchanges) == []


async def test_failing_coroutine_fails_only_its_stream(build: Build) -> None:
    exchanges = running(build)
    error = KeyError("a secret")

    @exchanges.service.call("r")
    async def handler(request):
        raise error

    ask(build, exchanges, "CALL")
    await until(lambda: bool(exchanges.ended))
    assert exchanges.failed == [(error, "the call handler 'r'")]
    assert (answered(exchanges), exchanges.tasks) == ([], set())


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_base_exception_of_work_fails_the_stream(build: Build, exchanges: Any, error: type[BaseException]) -> None:
    @exchanges.service.call("r")
    def handler(request):
        raise error

    ask(build, exchanges, "CALL")
    assert [type(failure) for failure, _ in exchanges.failed] == [error]


def test_invalid_result_fails_the_stream(build: Build, exchanges: Any) -> None:
    exchanges.service.call("r")(lambda request: 5)
    ask(build, exchanges, "CALL")
    assert "int" in str(exchanges.failed[0][0])


async def test_invalid_result_of_a_coroutine_fails_the_stream(build: Build) -> None:
    exchanges = running(build)

    @exchanges.service.call("r")
    async def handler(request):
        return 5

    ask(build, exchanges, "CALL")
    await until(lambda: bool(exchanges.ended))
    assert "int" in str(exchanges.failed[0][0])


@pytest.mark.parametrize("stubborn", [False, True])
async def test_handler_is_canceled_with_its_stream(build: Build, stubborn: bool) -> None:
    exchanges = running(build)
    seen = []

    @exchanges.service.call("r")
    async def handler(request):
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            seen.append("canceled")
            if not stubborn:
                raise
        return b"late"

    ask(build, exchanges, "CALL")
    half = exchanges.outbound[STREAM]
    # It has started.
    await asyncio.sleep(0)
    half.canceled()
    await until(lambda: exchanges.ended == [half])
    assert seen == ["canceled"]
    assert (answered(exchanges), exchanges.failed, exchanges.tasks) == ([], [], set())


async def test_a_handler_that_others_cancel_has_failed(build: Build) -> None:
    exchanges = running(build)

    @exchanges.service.call("r")
    async def handler(request):
        raise asyncio.CancelledError

    ask(build, exchanges, "CALL")
    await until(lambda: bool(exchanges.ended))
    ((error, _),) = exchanges.failed
    assert isinstance(error, asyncio.CancelledError)


# Requests without a response.


def test_fired_request_has_no_response(build: Build, exchanges: Any) -> None:
    seen = []
    exchanges.service.fire("r")(lambda request: seen.append(request.data))
    ask(build, exchanges, "FIRE")
    assert (seen, exchanges.session.told) == ([b"request"], [])


async def test_fire_handlers_are_counted(build: Build) -> None:
    exchanges = running(build)
    released = asyncio.Event()

    @exchanges.service.fire("r")
    async def handler(request):
        await released.wait()

    for count in (1, 2, 3):
        ask(build, exchanges, "FIRE")
        assert exchanges.slots.lingering == count
    # No stream is open, so there is nothing to cancel.
    assert exchanges.outbound == {}
    released.set()
    await until(lambda: exchanges.slots.lingering == 0)
    assert (exchanges.session.told, exchanges.tasks) == ([], set())


# Many items.


def test_a_stream_is_sent_as_credit_allows(build: Build, exchanges: Any) -> None:
    exchanges.service.stream("r")(lambda request: [b"0", b"1", b"2"])
    ask(build, exchanges, "STREAM", credit=2)
    assert exchanges.session.items(STREAM) == [b"0", b"1"]
    exchanges.session.left[STREAM] = 1
    exchanges.outbound[STREAM].granted()
    assert exchanges.session.items(STREAM) == [b"0", b"1", b"2"]
    assert exchanges.session.verbs("complete") == [("complete", STREAM)]


def test_channel_requests_a_window_and_sends(build: Build, exchanges: Any) -> None:
    @exchanges.service.channel("r")
    def handler(request, items):
        yield request.data

    ask(build, exchanges, "CHANNEL", credit=1, done=False)
    # The protocol counts the request as the first item.
    credit = exchanges.flow.settings.credit
    assert exchanges.session.verbs("request") == [("request", STREAM, 1 + credit)]
    assert exchanges.session.items(STREAM) == [b"request"]
    assert (exchanges.inbound[STREAM].window, exchanges.inbound[STREAM].expected) == (credit, credit)


def test_channel_of_one_item_requests_none(build: Build, exchanges: Any) -> None:
    taken = []

    @exchanges.service.channel("r")
    def handler(request, items):
        taken.append(items)
        return []

    ask(build, exchanges, "CHANNEL", credit=1, done=True)
    assert (exchanges.inbound, exchanges.session.verbs("request")) == ({}, [])
    assert len(taken) == 1


def test_a_channel_whose_handler_fails_at_once_is_failed(build: Build, exchanges: Any) -> None:
    error = ValueError("broken")

    @exchanges.service.channel("r")
    def handler(request, items):
        raise error

    ask(build, exchanges, "CHANNEL", credit=1, done=False)
    assert exchanges.failed == [(error, "the channel handler 'r'")]


def test_an_upload_that_is_answered_takes_no_more_items(build: Build, exchanges: Any) -> None:
    exchanges.service.upload("r")(lambda request, items: b"enough")
    ask(build, exchanges, "CHANNEL", credit=1, done=False)
    assert answered(exchanges) == [b"enough"]
    assert exchanges.session.told[-1] == ("cancel", STREAM)


async def test_an_upload_reads_its_items_to_the_end(build: Build) -> None:
    exchanges = running(build)

    @exchanges.service.upload("r")
    async def handler(request, items):
        return b" ".join([item.data async for item in items])

    ask(build, exchanges, "CHANNEL", credit=1, done=False)
    inbound = exchanges.inbound[STREAM]
    payload = build.module("weirpool.payload").Payload
    inbound.item(payload(b"a"))
    inbound.item(payload(b"b"))
    inbound.ended(None)
    await until(lambda: bool(exchanges.ended))
    assert answered(exchanges) == [b"a b"]
