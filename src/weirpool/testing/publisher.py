"""The rules of a publisher, as far as a requester across a network can check them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Final, TypeAlias

from ..errors import ProtocolError
from .published import SPARE, Published, opened, silence_of
from .requester import FENCES, UNKNOWN_ROUTE, RawRequester, RawStream
from .results import Broken, Result, Skipped, require, results_of

__all__ = ["PUBLISHER_RULES", "check_publisher"]

Check: TypeAlias = Callable[[RawRequester, Published], Awaitable[None]]

BURST: Final = 1_000
"""Requests at once: more than in normal use, but within any rate limit."""
MANY: Final = 1_000_000
"""More items than can arrive before a cancel takes effect."""


async def check_publisher(published: Published, rules: Iterable[str] | None = None) -> list[Result]:
    """Check a server's streams, over a new connection for each rule.

    Args:
        published: The server and its streams.
        rules: The numbers of the rules to check, from `PUBLISHER_RULES`; None for all.

    Raises:
        LocalError: One of `rules` is not a publisher's rule.
        ConnectError: The server cannot be reached.

    """

    async def run(check: Check) -> None:
        async with published.connect() as raw:
            await check(raw, published)

    return await results_of({number: partial(run, check) for number, check in _CHECKS.items()}, rules)


async def _demand_matters(raw: RawRequester, published: Published) -> None:
    """Raise Skipped if the protocol has no demand."""
    stream = opened(raw, published.finite, 1)
    stream.request(1)
    raw.write(stream.cancel())
    await raw.fence()


async def _exactly(raw: RawRequester, stream: RawStream, count: int) -> None:
    await stream.has(count)
    await raw.fence()
    require(len(stream.items) == count, f"{count} items were requested, and {len(stream.items)} arrived")


async def _stops(raw: RawRequester, stream: RawStream, silence: float) -> None:
    """Wait until a canceled stream has sent nothing for `silence` seconds."""
    deadline = raw.loop.time() + raw.patience
    while await _sends(raw, stream, silence):
        require(raw.loop.time() < deadline, f"items still arrive {raw.patience:g} s after the cancel")


async def _sends(raw: RawRequester, stream: RawStream, silence: float) -> bool:
    """Return whether an item arrives within `silence` seconds and some round trips."""
    before = len(stream.items)
    await raw.fence()
    await raw.passes(silence, lambda: len(stream.items) > before)
    return len(stream.items) > before


async def _no_more_than_requested(raw: RawRequester, published: Published) -> None:
    await _demand_matters(raw, published)
    stream = opened(raw, published.endless or published.finite, 1)
    await _exactly(raw, stream, 1)
    raw.write(stream.request(2))
    await _exactly(raw, stream, 3)


async def _fewer_items_and_end(raw: RawRequester, published: Published) -> None:
    stream = opened(raw, published.finite, published.count + SPARE)
    await stream.ends()
    require(len(stream.items) <= published.count + SPARE, "more items arrived than were requested")


async def _in_order(raw: RawRequester, published: Published) -> None:
    whole = opened(raw, published.finite, published.count + SPARE)
    await whole.ends()
    singly = opened(raw, published.finite, 1)
    raw.write([frame for _ in range(published.count) for frame in singly.request(1)])
    await singly.ends()
    require(singly.items == whole.items, "requested one by one, the items or their order are different")


async def _failure_is_signaled(raw: RawRequester, published: Published) -> None:
    stream = opened(raw, published.named("failing"), published.count + SPARE)
    await stream.ends()
    require(stream.error is not None, "the stream that fails completed")


async def _end_needs_no_demand(raw: RawRequester, published: Published) -> None:
    stream = opened(raw, published.finite, published.count)
    await stream.ends()
    require(stream.error is None, f"the finite stream failed: {stream.error}")
    require(len(stream.items) == published.count, f"{len(stream.items)} items arrived instead of {published.count}")
    if published.empty is not None:
        empty = opened(raw, published.empty, 1)
        await empty.ends()
        require(empty.error is None, f"the empty stream failed: {empty.error}")
        require(not empty.items, f"{len(empty.items)} items arrived on the empty stream")


async def _counts_strays(published: Published) -> bool:
    """Return True if an observer that does not know of a fence counts each of its answers as one stray frame."""
    async with published.connect(FENCES) as strict:
        if strict.ignored is None:
            raise Skipped("the protocol's sessions ignore what arrives on streams that have ended")
        await strict.hidden_fence()
        return strict.open


async def _nothing_comes(published: Published, act: Callable[[RawRequester], Awaitable[None]], why: str) -> None:
    """Check that nothing arrives on a closed stream after `act`.

    The observer counts what arrives on streams that have ended. Raises Skipped if its protocol counts nothing.
    """
    if await _counts_strays(published):
        async with published.connect(FENCES) as strict:
            await act(strict)
            await strict.hidden_fence()
            await strict.passes(published.settle)
            require(strict.open, f"{why}: {strict.error or 'the server closed the connection'}")
        return
    # The observer must know of the fence, and tolerates one frame, so every cause of a frame is repeated.
    async with published.connect(1) as strict:
        for _ in range(2):
            await act(strict)
            with suppress(Broken):
                await strict.fence()
            await strict.passes(published.settle)
            require(strict.open, f"{why}: {strict.error or 'the server closed the connection'}")


async def _ended_is_canceled(raw: RawRequester, published: Published) -> None:
    async def ask_after_the_end(strict: RawRequester) -> None:
        stream = opened(strict, published.finite, 1)
        requests = stream.request(published.count)
        strict.write(requests)
        cancels = stream.cancel()
        await stream.ends()
        strict.write(requests + cancels)

    await _nothing_comes(published, ask_after_the_end, "request and cancel after the end were answered")


async def _nothing_after_the_end(raw: RawRequester, published: Published) -> None:
    for what in filter(None, (published.finite, published.failing)):

        async def end(strict: RawRequester, what: tuple[str, bytes] = what) -> None:
            await opened(strict, what, published.count + SPARE).ends()

        await _nothing_comes(published, end, "a frame arrived on a stream after its end")


async def _cancel_stops(raw: RawRequester, published: Published) -> None:
    what = published.named("endless")
    silence = await silence_of(published, what)
    stream = opened(raw, what, MANY)
    await stream.has(3)
    stream.leave()
    await _stops(raw, stream, silence)


async def _refused_by_error(raw: RawRequester, published: Published) -> None:
    stream = raw.opened(UNKNOWN_ROUTE, b"", 1)
    await stream.ends()
    require(stream.error is not None, "a stream that does not exist completed instead of failing")
    require(not stream.items, "a stream that does not exist has items")
    await opened(raw, published.finite, 1).has(1)
    await raw.fence()


async def _subscribed_once(raw: RawRequester, published: Published) -> None:
    stream = opened(raw, published.finite, 1)
    # It is not written: where a cancel can be omitted, a request can be sent twice.
    stream.cancel()
    await stream.has(1)
    raw.write(stream.opening)
    # A server may treat it as an attack, and close the connection.
    with suppress(Broken):
        await raw.fence()
    # This end closes it only if the server accepts the request again.
    require(not isinstance(raw.error, ProtocolError), f"the same request was accepted twice: {raw.error}")
    require(len(stream.items) == 1, "the same request was served twice")


async def _each_by_its_own_demand(raw: RawRequester, published: Published) -> None:
    await _demand_matters(raw, published)
    first, second = opened(raw, published.finite, 1), opened(raw, published.finite, 2)
    await _exactly(raw, second, 2)
    await _exactly(raw, first, 1)
    raw.write(first.request(2))
    await _exactly(raw, first, 3)
    await _exactly(raw, second, 2)
    more = second.request(1)
    raw.write(first.cancel() + more)
    await _exactly(raw, second, 3)


async def _request_after_cancel(raw: RawRequester, published: Published) -> None:
    await _demand_matters(raw, published)
    what = published.endless or published.finite
    silence = await silence_of(published, what)
    stream = opened(raw, what, 1)
    await stream.has(1)
    requests = stream.request(2)
    raw.write(stream.cancel())
    await _stops(raw, stream, silence)
    raw.write(requests)
    require(not await _sends(raw, stream, silence), "items arrived after a request that followed the cancel")


async def _cancel_after_cancel(raw: RawRequester, published: Published) -> None:
    await _demand_matters(raw, published)
    what = published.endless or published.finite
    silence = await silence_of(published, what)
    stream = opened(raw, what, 1)
    await stream.has(1)
    cancels = stream.cancel()
    raw.write(cancels)
    await _stops(raw, stream, silence)
    over = stream.over
    raw.write(cancels)
    require(not await _sends(raw, stream, silence) and stream.over == over, "a second cancel was answered")


async def _requests_add_up(raw: RawRequester, published: Published) -> None:
    await _demand_matters(raw, published)
    stream = opened(raw, published.finite, 1)
    raw.write(stream.request(1) + stream.request(1))
    await _exactly(raw, stream, 3)


async def _request_of_none(raw: RawRequester, published: Published) -> None:
    stream = opened(raw, published.endless or published.finite, 1)
    await stream.has(1)
    raw.write(stream.request(0))
    # Closing the whole connection is a valid answer too.
    await raw.until(lambda: stream.over or not raw.open, "a request of 0 items was not answered")
    require(stream.error is not None or not raw.open, "a request of 0 items completed the stream instead of failing it")


async def _early_cancel(raw: RawRequester, published: Published) -> None:
    what = published.named("endless")
    silence = await silence_of(published, what)
    stream = opened(raw, what, MANY)
    stream.leave()
    await _stops(raw, stream, silence)


async def _canceled_free_capacity(raw: RawRequester, published: Published) -> None:
    what = published.endless or published.finite
    streams = [raw.prepared(*what, 1) for _ in range(published.streams + 1)]
    for stream, cancel in zip(streams, raw.cancels(streams), strict=True):
        raw.write(stream.opening + cancel)
    await raw.fence()
    stream = opened(raw, published.finite, published.count)
    await stream.ends()
    require(stream.error is None, f"after many canceled streams the server rejects another: {stream.error}")


async def _many_requests(raw: RawRequester, published: Published) -> None:
    stream = opened(raw, published.named("endless"), 1)
    raw.write([frame for _ in range(BURST) for frame in stream.request(1)])
    await stream.has(1 + BURST)
    raw.write(stream.cancel())
    await raw.fence()


async def _endless_demand(raw: RawRequester, published: Published) -> None:
    finite = opened(raw, published.finite, 1)
    raw.write(finite.request(raw.max_request))
    await finite.ends()
    require(finite.error is None, f"the greatest demand failed the stream: {finite.error}")
    require(len(finite.items) == published.count, f"{len(finite.items)} items arrived instead of {published.count}")
    stream = opened(raw, published.endless or published.finite, 1)
    cancel = stream.cancel()
    most = stream.request(raw.max_request)
    raw.write(most + most)
    # The server has then read both requests, and what it sent before them has arrived.
    await raw.fence()
    if published.endless is not None and not stream.over:
        await stream.has(len(stream.items) + SPARE)
    raw.write(cancel)
    await raw.fence()
    require(stream.error is None, f"the greatest demand, requested again, failed the stream: {stream.error}")


_CHECKS: Final[dict[str, Check]] = {
    "1.1": _no_more_than_requested,
    "1.2": _fewer_items_and_end,
    "1.3": _in_order,
    "1.4": _failure_is_signaled,
    "1.5": _end_needs_no_demand,
    "1.6": _ended_is_canceled,
    "1.7": _nothing_after_the_end,
    "1.8": _cancel_stops,
    "1.9": _refused_by_error,
    "1.10": _subscribed_once,
    "1.11": _each_by_its_own_demand,
    "3.6": _request_after_cancel,
    "3.7": _cancel_after_cancel,
    "3.8": _requests_add_up,
    "3.9": _request_of_none,
    "3.12": _early_cancel,
    "3.13": _canceled_free_capacity,
    "3.16": _many_requests,
    "3.17": _endless_demand,
}
PUBLISHER_RULES: Final = tuple(_CHECKS)
"""The rules that `check_publisher` checks."""
