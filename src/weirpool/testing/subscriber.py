"""The rules of a subscriber, as far as a publisher across a network can check them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from ..errors import ApplicationError, LocalError
from ..payload import Payload
from .ends import PATIENCE
from .responder import RawPublisher
from .results import Broken, Result, Skipped, require, results_of

__all__ = ["SUBSCRIBER_RULES", "Subscribing", "check_subscriber"]

Consume: TypeAlias = Callable[[str, int | None], Awaitable[list[bytes]]]
Check: TypeAlias = Callable[[RawPublisher, "_Run"], Awaitable[None]]

WINDOWS: Final = 3
"""The number of items to send, in multiples of the first demand, so that more must be requested."""
MAX_ITEMS: Final = 2_000
"""Maximum items of one check, regardless of the demand."""
LATE_ITEMS: Final = 8
"""Items in flight when a subscriber cancels."""
EMPTY_VALUE: Final = b"null"
LARGE_BYTES: Final = 300_000
"""An item that is larger than one read."""


@dataclass(frozen=True, kw_only=True)
class Subscribing:
    """A client whose rules are to be checked.

    Attributes:
        consume: ``await consume(url, take)`` connects to the server at `url`, requests one stream of any route, takes
            `take` items and cancels, or with None takes all of them. It returns their data, closes its connection, and
            raises the error of the stream.
        url: The URL to serve, with its protocol. The client runs in this event loop.
        patience: Seconds to wait for an expected event.

    """

    consume: Consume
    url: str
    patience: float = PATIENCE


class _Run:
    """One run of the client, in a task."""

    def __init__(self, subscribing: Subscribing) -> None:
        self._subscribing = subscribing
        self._task: asyncio.Task[list[bytes]] | None = None

    async def subscribe(self, publisher: RawPublisher, take: int | None = None) -> None:
        """Start the client and wait for its request."""

        async def consume() -> list[bytes]:
            return await self._subscribing.consume(publisher.url, take)

        self._task = asyncio.get_running_loop().create_task(consume())
        await publisher.subscribed()

    async def result(self, publisher: RawPublisher) -> list[bytes] | Exception:
        """Return the client's result."""
        assert self._task is not None
        await asyncio.wait((self._task,), timeout=publisher.patience)
        require(self._task.done(), f"the subscriber has not ended within {publisher.patience:g} s")
        error = self._task.exception()
        if error is not None and not isinstance(error, Exception):
            raise error
        return error or self._task.result()

    async def stop(self) -> None:
        """Cancel the client if it still runs."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await self._task


async def check_subscriber(subscribing: Subscribing, rules: Iterable[str] | None = None) -> list[Result]:
    """Check a client, over a new connection for each rule.

    Args:
        subscribing: The client.
        rules: The numbers of the rules to check, from `SUBSCRIBER_RULES`; None for all.

    Raises:
        LocalError: One of `rules` is not a subscriber's rule.
        ConnectError: The URL cannot be served.

    """

    async def run(check: Check) -> None:
        client = _Run(subscribing)
        async with RawPublisher(subscribing.url, subscribing.patience) as publisher:
            try:
                await check(publisher, client)
            finally:
                await client.stop()

    return await results_of({number: partial(run, check) for number, check in _CHECKS.items()}, rules)


def _items(count: int) -> list[Payload]:
    return [Payload(b"%d" % number) for number in range(count)]


async def _sent(publisher: RawPublisher, items: list[Payload]) -> None:
    """Send items as they are requested."""
    for item in items:
        await publisher.until(lambda: publisher.demand() > 0, "the subscriber does not request more items")
        publisher.write(publisher.send(item))


async def _consumed(publisher: RawPublisher, client: _Run, items: list[Payload]) -> None:
    _same(await client.result(publisher), items)


def _same(result: list[bytes] | Exception, items: list[Payload]) -> None:
    require(result == [item.data for item in items], f"the subscriber's items differ from those sent: {result!r:.200}")


async def _asks_for_more(publisher: RawPublisher, client: _Run) -> None:
    await client.subscribe(publisher)
    first = publisher.demand()
    require(first > 0, "the subscriber requested no item")
    items = _items(min(WINDOWS * first, MAX_ITEMS))
    await _sent(publisher, items)
    publisher.write(publisher.complete())
    await _consumed(publisher, client, items)
    require(all(count > 0 for count in publisher.granted), f"the subscriber requested {publisher.granted} items")


async def _silent_after(publisher: RawPublisher, client: _Run, end: Callable[[RawPublisher], list[bytes]]) -> None:
    """Check that nothing is sent on a stream that `end` has ended."""
    await client.subscribe(publisher)
    await _sent(publisher, _items(1))
    await publisher.settle()
    before = len(publisher.granted)
    publisher.write(end(publisher))
    await client.result(publisher)
    await publisher.settle()
    require(len(publisher.granted) == before, "the subscriber requests items of a closed stream")
    require(not publisher.canceled, "the subscriber cancels a closed stream")


def _fail(publisher: RawPublisher) -> list[bytes]:
    return publisher.fail(ApplicationError(message="the stream failed"))


async def _refuses_a_second(publisher: RawPublisher, client: _Run) -> None:
    await client.subscribe(publisher)
    await _sent(publisher, _items(1))
    publisher.write(publisher.acceptance())
    # Closing the whole connection is a valid answer too.
    with suppress(Broken):
        await publisher.until(lambda: publisher.canceled, "")
    require(publisher.canceled or not publisher.open, "the subscriber accepts a second subscription")


async def _cancels(publisher: RawPublisher, client: _Run) -> None:
    await client.subscribe(publisher, 1)
    await _sent(publisher, _items(1))
    await publisher.until(lambda: publisher.canceled, "the subscriber does not cancel, although it needs no more items")


async def _takes_late_items(publisher: RawPublisher, client: _Run) -> None:
    await client.subscribe(publisher, 1)
    items = _items(LATE_ITEMS)[: publisher.demand()]
    if len(items) < 2:
        raise Skipped("the subscriber requests one item at a time: none can be in flight when it cancels")
    frames = [publisher.send(item) for item in items]
    publisher.write([part for frame in frames for part in frame])
    await publisher.until(lambda: publisher.canceled, "the subscriber does not cancel, although it needs no more items")
    publisher.write(frames[-1])
    await _consumed(publisher, client, items[:1])


async def _takes_completion(publisher: RawPublisher, client: _Run) -> None:
    await client.subscribe(publisher)
    publisher.write(publisher.complete())
    await _consumed(publisher, client, [])


async def _takes_error(publisher: RawPublisher, client: _Run) -> None:
    await client.subscribe(publisher)
    publisher.write(_fail(publisher))
    result = await client.result(publisher)
    require(isinstance(result, Exception), f"the subscriber ignored an error and returned {result!r:.200}")


async def _subscribes_once(publisher: RawPublisher, client: _Run) -> None:
    await client.subscribe(publisher)
    await _sent(publisher, _items(1))
    await publisher.settle()
    publisher.write(publisher.complete())
    await _consumed(publisher, client, _items(1))
    require(len(publisher.streams) == 1, f"one subscription opened {len(publisher.streams)} streams")
    require(publisher.connections == 1, f"one subscription made {publisher.connections} connections")


async def _takes_any_item(publisher: RawPublisher, client: _Run) -> None:
    await client.subscribe(publisher)
    sent: list[Payload] = []
    for item in (Payload(), Payload(b'"%s"' % (b"x" * LARGE_BYTES)), Payload(b"\0"), Payload(b"0")):
        # A protocol with a codec supports only items that it can encode.
        with suppress(LocalError):
            await _sent(publisher, [item])
            sent.append(item)
    publisher.write(publisher.complete())
    result = await client.result(publisher)
    # A protocol whose items are values has no empty item.
    if isinstance(result, list) and result[:1] == [EMPTY_VALUE]:
        result[0] = b""
    _same(result, sent)


_CHECKS: Final[dict[str, Check]] = {
    "2.1": _asks_for_more,
    "2.3": partial(_silent_after, end=RawPublisher.complete),
    "2.4": partial(_silent_after, end=_fail),
    "2.5": _refuses_a_second,
    "2.6": _cancels,
    "2.8": _takes_late_items,
    "2.9": _takes_completion,
    "2.10": _takes_error,
    "2.12": _subscribes_once,
    "2.13": _takes_any_item,
}
SUBSCRIBER_RULES: Final = tuple(_CHECKS)
"""The rules that `check_subscriber` checks."""
