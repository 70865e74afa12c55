from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from tests.aio.fakes import FakeDriver, FakeLoop
from tests.builds import Build
from tests.waiting import until

STREAM = 2


@pytest.fixture
def driver(build: Build) -> FakeDriver:
    """A driver for handlers that never wait."""
    return FakeDriver(build, FakeLoop())


def running(build: Build) -> FakeDriver:
    return FakeDriver(build, asyncio.get_running_loop())


def ask(build: Build, driver: FakeDriver, kind: str, route: str = "r", credit: int = 0, done: bool = True) -> None:
    """Bring a request in."""
    payload = build.module("penstock.payload").Payload(b"request")
    kinds = build.module("penstock.kinds").Kind
    event = build.module("penstock.events").Requested(STREAM, kinds[kind], route, payload, credit, done)
    driver.session.left[STREAM] = credit
    build.module("penstock.aio.handlers").begin(driver, event)


def answered(driver: FakeDriver) -> list[bytes]:
    """Return the items of answers, each the last one of its stream."""
    sent = driver.session.verbs("send")
    assert all(done for *_, done in sent)
    return [data for *_, items, _ in sent for data in items]


# One item for one.


@pytest.mark.parametrize(
    ("result", "data"), [(b"bytes", b"bytes"), ("text", b"text"), (memoryview(b"view"), b"view"), (None, b"")]
)
def test_what_a_function_returns_is_the_answer(build: Build, driver: FakeDriver, result: object, data: bytes) -> None:
    driver.service.call("r")(lambda request: result)
    ask(build, driver, "CALL")
    assert answered(driver) == [data]
    assert (driver.outbound, driver.tasks) == ({}, set())


def test_a_payload_is_the_answer_as_it_is(build: Build, driver: FakeDriver) -> None:
    driver.service.call("r")(lambda request: request)
    ask(build, driver, "CALL")
    assert answered(driver) == [b"request"]


@pytest.mark.parametrize("credit", [0, 1])
def test_a_call_that_comes_as_a_stream_is_answered_under_credit(build: Build, driver: FakeDriver, credit: int) -> None:
    driver.session.calls_by_streams = True
    driver.service.call("r")(lambda request: b"answer")
    ask(build, driver, "STREAM", credit=credit)
    assert driver.session.items(STREAM) == [b"answer"] * credit
    assert (("complete", STREAM) in driver.session.told) is (credit == 1)


async def test_a_call_that_comes_as_a_stream_may_take_its_time(build: Build) -> None:
    driver = running(build)
    driver.session.calls_by_streams = True

    @driver.service.call("r")
    async def handler(request: Any) -> bytes:
        await asyncio.sleep(0)
        return b"later"

    ask(build, driver, "STREAM", credit=1)
    await until(lambda: ("complete", STREAM) in driver.session.told)
    assert driver.session.items(STREAM) == [b"later"]


async def test_a_call_that_nobody_wants_before_it_began_is_closed(build: Build) -> None:
    driver = running(build)
    driver.session.calls_by_streams = True
    called: list[Any] = []

    @driver.service.call("r")
    def handler(request: Any) -> Any:
        called.append(never_begun())
        return called[0]

    async def never_begun() -> bytes:
        return b""

    ask(build, driver, "STREAM", credit=1)
    half = driver.outbound.pop(STREAM, None)
    if half is not None:
        half.canceled()
    await until(lambda: not driver.tasks)
    # A coroutine that was never begun would warn, and warnings are errors here.
    assert inspect.getcoroutinestate(called[0]) == inspect.CORO_CLOSED


async def test_what_a_coroutine_returns_is_the_answer(build: Build) -> None:
    driver = running(build)
    released = asyncio.Event()

    @driver.service.call("r")
    async def handler(request: Any) -> Any:
        await released.wait()
        return request

    ask(build, driver, "CALL")
    assert STREAM in driver.outbound
    released.set()
    await until(lambda: bool(driver.ended))
    assert answered(driver) == [b"request"]
    assert (driver.failed, driver.tasks) == ([], set())


@pytest.mark.parametrize("kind", ["CALL", "FIRE", "STREAM", "CHANNEL"])
def test_nobody_by_that_name_is_a_rejection(build: Build, driver: FakeDriver, kind: str) -> None:
    ask(build, driver, kind, "nobody" + "x" * 500)
    ((_, stream_id, error),) = driver.session.verbs("fail")
    assert stream_id == STREAM
    assert isinstance(error, build.module("penstock.errors").Rejected)
    assert kind.lower() in str(error) and "'nobodyxxx" in str(error)
    # What a peer says is not said back at any length.
    assert len(str(error)) < 200


def test_a_function_that_fails_fails_its_stream_alone(build: Build, driver: FakeDriver) -> None:
    error = KeyError("a secret")

    @driver.service.call("r")
    def handler(request: Any) -> bytes:
        raise error

    ask(build, driver, "CALL")
    assert driver.failed == [(error, "the call handler 'r'")]
    assert answered(driver) == []


async def test_a_coroutine_that_fails_fails_its_stream_alone(build: Build) -> None:
    driver = running(build)
    error = KeyError("a secret")

    @driver.service.call("r")
    async def handler(request: Any) -> bytes:
        raise error

    ask(build, driver, "CALL")
    await until(lambda: bool(driver.ended))
    assert driver.failed == [(error, "the call handler 'r'")]
    assert (answered(driver), driver.tasks) == ([], set())


def test_what_ends_the_process_is_not_taken_for_a_failure(build: Build, driver: FakeDriver) -> None:
    @driver.service.call("r")
    def handler(request: Any) -> bytes:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask(build, driver, "CALL")


def test_what_is_no_item_is_a_failure(build: Build, driver: FakeDriver) -> None:
    driver.service.call("r")(lambda request: 5)
    ask(build, driver, "CALL")
    assert "int" in str(driver.failed[0][0])


async def test_what_is_no_item_in_the_end_is_a_failure(build: Build) -> None:
    driver = running(build)

    @driver.service.call("r")
    async def handler(request: Any) -> int:
        return 5

    ask(build, driver, "CALL")
    await until(lambda: bool(driver.ended))
    assert "int" in str(driver.failed[0][0])


@pytest.mark.parametrize("stubborn", [False, True])
async def test_an_answer_that_nobody_wants_is_given_up(build: Build, stubborn: bool) -> None:
    driver = running(build)
    seen = []

    @driver.service.call("r")
    async def handler(request: Any) -> bytes:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            seen.append("canceled")
            if not stubborn:
                raise
        return b"late"

    ask(build, driver, "CALL")
    half = driver.outbound[STREAM]
    # It has begun.
    await asyncio.sleep(0)
    half.canceled()
    await until(lambda: driver.ended == [half])
    assert seen == ["canceled"]
    assert (answered(driver), driver.failed, driver.tasks) == ([], [], set())


async def test_a_handler_that_others_cancel_has_failed(build: Build) -> None:
    driver = running(build)

    @driver.service.call("r")
    async def handler(request: Any) -> bytes:
        raise asyncio.CancelledError

    ask(build, driver, "CALL")
    await until(lambda: bool(driver.ended))
    ((error, _),) = driver.failed
    assert isinstance(error, asyncio.CancelledError)


# No answer.


def test_what_is_fired_is_not_answered(build: Build, driver: FakeDriver) -> None:
    seen = []
    driver.service.fire("r")(lambda request: seen.append(request.data))
    ask(build, driver, "FIRE")
    assert (seen, driver.session.told) == ([b"request"], [])


async def test_handlers_of_what_is_fired_are_counted(build: Build) -> None:
    driver = running(build)
    released = asyncio.Event()

    @driver.service.fire("r")
    async def handler(request: Any) -> None:
        await released.wait()

    for count in (1, 2, 3):
        ask(build, driver, "FIRE")
        assert driver.fires == count
    # No stream is open, so nobody can cancel one.
    assert driver.outbound == {}
    released.set()
    await until(lambda: driver.fires == 0)
    assert (driver.session.told, driver.tasks) == ([], set())


# Many items.


def test_a_stream_is_sent_as_credit_allows(build: Build, driver: FakeDriver) -> None:
    driver.service.stream("r")(lambda request: [b"0", b"1", b"2"])
    ask(build, driver, "STREAM", credit=2)
    assert driver.session.items(STREAM) == [b"0", b"1"]
    driver.session.left[STREAM] = 1
    driver.outbound[STREAM].granted()
    assert driver.session.items(STREAM) == [b"0", b"1", b"2"]
    assert driver.session.verbs("complete") == [("complete", STREAM)]


def test_a_channel_asks_for_a_window_and_sends(build: Build, driver: FakeDriver) -> None:
    @driver.service.channel("r")
    def handler(request: Any, items: Any) -> Iterator[bytes]:
        yield request.data

    ask(build, driver, "CHANNEL", credit=1, done=False)
    assert driver.session.verbs("request") == [("request", STREAM, driver.settings.credit)]
    assert driver.session.items(STREAM) == [b"request"]
    assert driver.inbound[STREAM].window == driver.settings.credit


def test_a_channel_of_one_item_asks_for_none(build: Build, driver: FakeDriver) -> None:
    taken = []

    @driver.service.channel("r")
    def handler(request: Any, items: Any) -> list[bytes]:
        taken.append(items)
        return []

    ask(build, driver, "CHANNEL", credit=1, done=True)
    assert (driver.inbound, driver.session.verbs("request")) == ({}, [])
    assert len(taken) == 1


def test_a_channel_whose_handler_fails_at_once_is_failed(build: Build, driver: FakeDriver) -> None:
    error = ValueError("broken")

    @driver.service.channel("r")
    def handler(request: Any, items: Any) -> list[bytes]:
        raise error

    ask(build, driver, "CHANNEL", credit=1, done=False)
    assert driver.failed == [(error, "the channel handler 'r'")]


def test_an_upload_that_is_answered_takes_no_more_items(build: Build, driver: FakeDriver) -> None:
    driver.service.upload("r")(lambda request, items: b"enough")
    ask(build, driver, "CHANNEL", credit=1, done=False)
    assert answered(driver) == [b"enough"]
    assert driver.session.told[-1] == ("cancel", STREAM)


async def test_an_upload_reads_its_items_to_the_end(build: Build) -> None:
    driver = running(build)

    @driver.service.upload("r")
    async def handler(request: Any, items: Any) -> bytes:
        return b" ".join([item.data async for item in items])

    ask(build, driver, "CHANNEL", credit=1, done=False)
    inbound = driver.inbound[STREAM]
    payload = build.module("penstock.payload").Payload
    inbound.item(payload(b"a"))
    inbound.item(payload(b"b"))
    inbound.ended(None)
    await until(lambda: bool(driver.ended))
    assert answered(driver) == [b"a b"]
