from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

import weirpool
from tests.reactive.probe import IDLE_TURNS, Scripted
from tests.testing.serving import assert_kept
from tests.waiting import turns, until
from weirpool import ApplicationError, Items, LocalError, Payload, Service, Settings
from weirpool.protocols import PROTOCOLS
from weirpool.reactive import Publisher, from_aiter, publishing
from weirpool.testing import PUBLISHER_RULES, Published, check_publisher

STREAMS = 20


def numbers(request: Payload) -> Publisher[bytes]:
    return from_aiter(b"%d" % number for number in range(int(request.data)))


async def failing() -> AsyncIterator[bytes]:
    yield b"0"
    raise ApplicationError(message="failed as it should")


@asynccontextmanager
async def serving(service: Service, protocol: str = "rsocket") -> AsyncIterator[str]:
    settings = Settings(max_streams=STREAMS)
    async with weirpool.serve(service, f"{protocol}+memory://handlers", settings=settings) as server:
        yield server.urls[0]


@pytest.mark.parametrize("rule", PUBLISHER_RULES)
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_they_keep_every_rule_of_a_publisher(protocol: str, rule: str) -> None:
    service = Service()
    service.stream("tests.numbers")(publishing(numbers))
    service.stream("tests.failing")(publishing(lambda request: from_aiter(failing())))
    async with serving(service, protocol) as url:
        finite, endless = ("tests.numbers", b"6"), ("tests.numbers", b"1000000000")
        published = Published(
            url=url, finite=finite, count=6, failing=("tests.failing", b""), endless=endless, streams=STREAMS
        )
        [result] = await check_publisher(published, [rule])
        assert_kept(result, protocol)


@pytest.mark.parametrize("window", [1, 10])
async def test_the_publisher_is_asked_for_a_window_ahead(window: int) -> None:
    service, publisher = Service(), Scripted()
    service.stream("scripted")(publishing(window=window)(lambda request: publisher))
    async with serving(service) as url, weirpool.connect(url) as peer:
        async with peer.stream("scripted", credit=3, manual=True) as items:
            await until(lambda: publisher.subscriber is not None)
            sent = 0
            while sent < sum(publisher.requested):
                publisher.subscriber.on_next(b"%d" % sent)
                sent += 1
                await turns(IDLE_TURNS)
            # The items requested on the wire, one that waits for more demand, and the window.
            assert publisher.requested[0] == window
            assert 3 < sent <= 3 + 1 + window
            taken = aiter(items)
            assert [(await anext(taken)).data for _ in range(3)] == [b"0", b"1", b"2"]
        await until(lambda: publisher.canceled == 1)


async def test_a_coroutine_may_return_the_publisher() -> None:
    service = Service()

    @service.stream("later")
    @publishing
    async def later(request: Payload) -> Publisher[bytes]:
        return numbers(request)

    async with serving(service) as url, weirpool.connect(url) as peer:
        assert [item.data async for item in peer.stream("later", b"3")] == [b"0", b"1", b"2"]


async def test_channel_can_return_a_publisher_of_its_items() -> None:
    service = Service()

    @service.channel("back")
    @publishing
    def back(request: Payload, items: Items) -> Publisher[Payload]:
        return from_aiter(items)

    async with serving(service) as url, weirpool.connect(url) as peer:
        answers = peer.channel("back", b"first", [b"1", b"2"])
        assert [item.data async for item in answers] == [b"1", b"2"]


async def test_handler_without_publisher_fails_the_stream() -> None:
    service = Service()
    service.stream("wrong")(publishing(lambda request: [b"1"]))
    async with serving(service) as url, weirpool.connect(url) as peer:
        with pytest.raises(ApplicationError):
            await anext(aiter(peer.stream("wrong")))


def test_wrong_handlers_and_windows_are_refused_at_once() -> None:
    service = Service()
    with pytest.raises(LocalError, match="must accept"):
        service.stream("none")(publishing(lambda request, more: from_aiter([])))
    with pytest.raises(LocalError, match="the window is 0"):
        publishing(window=0)(numbers)
