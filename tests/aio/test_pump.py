from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import weirpool
from tests.aio.fakes import FakeLoop, Source, fake_exchanges
from tests.builds import Build
from tests.missing import need_module
from weirpool import Payload, Service, Settings

STREAM = 1


@pytest.fixture
def exchanges(build: Build) -> Any:
    """Exchanges with a loop whose turns a test runs. Sending takes no time."""
    made = fake_exchanges(build, FakeLoop())
    made.flow.lane.scheduler.clock = lambda: 0.0
    return made


def numbers(start: int, end: int, width: int = 0) -> list[bytes]:
    return [b"%0*d" % (width, number) for number in range(start, end)]


def begin(build: Build, exchanges: Any, source: Any, credit: int = 0, name: str = "a handler") -> Any:
    exchanges.session.left[STREAM] = credit
    build.module("weirpool.aio.pump").pump(exchanges, STREAM, credit, source, name)
    return exchanges.outbound[STREAM]


def grant(exchanges: Any, half: Any, count: int) -> None:
    exchanges.session.left[STREAM] += count
    half.granted()


def resume(exchanges: Any) -> None:
    """Let the link accept output again, and run a turn of the loop."""
    exchanges.flow.writing_resumed()
    exchanges.flow.loop.turn()


def sent(exchanges: Any) -> list[bytes]:
    return exchanges.session.items(STREAM)


def completed(exchanges: Any) -> bool:
    return ("complete", STREAM) in exchanges.session.told


# Plain iterators.


def test_what_credit_allows_is_sent_and_one_item_is_taken_ahead(build: Build, exchanges: Any) -> None:
    source = Source(10)
    half = begin(build, exchanges, source)
    assert (sent(exchanges), source.taken) == ([], 0)
    grant(exchanges, half, 3)
    assert (sent(exchanges), source.taken) == (numbers(0, 3), 4)
    grant(exchanges, half, 2)
    assert (sent(exchanges), source.taken) == (numbers(0, 5), 6)
    assert not completed(exchanges)


@pytest.mark.parametrize(("size", "writes"), [(100, 0), (50_000, 1)])
def test_only_a_short_stream_waits_for_its_batch_to_be_written(
    build: Build, exchanges: Any, size: int, writes: int
) -> None:
    # THREATS 40. Otherwise the link of a peer that does not read gets far more than `output_high_bytes`.
    begin(build, exchanges, [b"x" * size], 10)
    assert completed(exchanges)
    assert exchanges.flow.writes == writes


@pytest.mark.parametrize("more", [0, 1])
def test_exact_demand_gets_the_completion(build: Build, exchanges: Any, more: int) -> None:
    source = Source(3)
    half = begin(build, exchanges, source, 3 + more)
    assert sent(exchanges) == numbers(0, 3)
    assert completed(exchanges)
    assert (source.closed, exchanges.ended) == (1, [half])
    grant(exchanges, half, 5)
    assert sent(exchanges) == numbers(0, 3)


def test_nothing_is_sent_while_the_link_is_full(build: Build, exchanges: Any) -> None:
    exchanges.flow.paused = True
    source = Source(3)
    begin(build, exchanges, source, 10)
    assert source.taken == 0
    resume(exchanges)
    assert sent(exchanges) == numbers(0, 3)
    assert exchanges.flow.loop.soon == []


def test_a_link_that_fills_stops_the_source_at_once(build: Build, exchanges: Any) -> None:
    width = 1_000
    source = Source(100_000, width)

    def write() -> None:
        exchanges.flow.paused = True

    exchanges.flow.write = write  # type: ignore[method-assign]
    begin(build, exchanges, source, 100_000)
    assert 0 < source.taken <= quantum(build) // width + 1
    for _ in range(3):
        exchanges.flow.loop.turn()
    assert source.taken <= quantum(build) // width + 1
    assert exchanges.flow.loop.soon == []


def quantum(build: Build) -> int:
    return int(build.module("weirpool.aio.scheduler").QUANTUM)


def test_turn_ends_when_its_time_is_used(build: Build, exchanges: Any) -> None:
    width, count = 1_000, 2_000
    source = Source(count, width)
    module = build.module("weirpool.aio.scheduler")
    # An item takes 10 µs.
    exchanges.flow.lane.scheduler.clock = lambda: source.taken * 1e-5
    begin(build, exchanges, source, count)
    # The first burst is sent at once.
    assert source.taken == quantum(build) // (width + 16) + 1
    turns = 0
    while exchanges.flow.loop.soon:
        before = source.taken
        exchanges.flow.loop.turn()
        turns += 1
        assert source.taken - before <= module.TURN_SECONDS / 1e-5 + quantum(build) // width + 1
    assert turns >= 10
    assert sent(exchanges) == numbers(0, count, width)
    assert completed(exchanges)


def test_response_of_one_item_does_not_wait_for_its_turn(build: Build, exchanges: Any) -> None:
    exchanges.flow.lane.scheduler.spent = 1.0
    begin(build, exchanges, (b"answer",), 1)
    assert sent(exchanges) == [b"answer"]
    assert completed(exchanges)


def test_all_kinds_of_items_go_out_in_order(build: Build, exchanges: Any) -> None:
    payload = build.module("weirpool.payload")
    run = payload.PayloadRun.of([payload.Payload(b"%d" % number) for number in range(3, 6)])
    items = [b"0", "1", payload.Payload(b"2"), run, memoryview(b"6"), bytearray(b"7")]
    begin(build, exchanges, items, 100)
    assert sent(exchanges) == numbers(0, 8)


@pytest.mark.parametrize("kind", ["run", "record batch"])
def test_batches_are_split_by_credit(build: Build, exchanges: Any, kind: str) -> None:
    payload = build.module("weirpool.payload")
    if kind == "run":
        many = payload.PayloadRun.of([payload.Payload(data) for data in numbers(1, 6)])
    else:
        pyarrow = need_module("pyarrow")
        many = pyarrow.record_batch({"data": pyarrow.array(numbers(1, 6), pyarrow.binary())})
    half = begin(build, exchanges, [b"0", many, b"6"], 3)
    assert sent(exchanges) == numbers(0, 3)
    for _ in range(4):
        grant(exchanges, half, 1)
    assert sent(exchanges) == numbers(0, 7)
    assert completed(exchanges)


def test_a_source_that_fails_fails_the_stream_after_its_items(build: Build, exchanges: Any) -> None:
    error = ValueError("broken")

    def source() -> Iterator[bytes]:
        yield b"0"
        raise error

    half = begin(build, exchanges, source(), 5)
    assert sent(exchanges) == [b"0"]
    assert (exchanges.failed, exchanges.ended) == ([(error, "a handler")], [half])
    assert not completed(exchanges)


def test_invalid_item_fails_the_stream(build: Build, exchanges: Any) -> None:
    begin(build, exchanges, [b"0", 1], 5)
    ((error, _),) = exchanges.failed
    assert isinstance(error, build.module("weirpool.errors").LocalError)
    assert "int" in str(error)


def test_canceled_stream_closes_its_source(build: Build, exchanges: Any) -> None:
    source = Source(10)
    half = begin(build, exchanges, source, 3)
    half.canceled()
    assert source.closed == 1
    grant(exchanges, half, 3)
    assert (sent(exchanges), exchanges.failed) == (numbers(0, 3), [])


def test_source_that_cancels_its_own_stream_is_closed(
    build: Build, exchanges: Any, caplog: pytest.LogCaptureFixture
) -> None:
    # A running generator cannot be closed.
    ended = []

    def source() -> Iterator[bytes]:
        try:
            yield b"0"
            exchanges.outbound[STREAM].canceled()
            yield b"1"
        finally:
            ended.append(True)

    half = begin(build, exchanges, source())
    grant(exchanges, half, 5)
    assert (ended, exchanges.failed, caplog.text) == ([True], [], "")


def test_a_stream_that_is_over_stops_without_an_error(build: Build, exchanges: Any) -> None:
    source = Source(10)
    half = begin(build, exchanges, source, 3)
    exchanges.session.closed.add(STREAM)
    grant(exchanges, half, 3)
    assert (source.closed, exchanges.failed, exchanges.ended) == (1, [], [half])


def test_a_source_that_fails_while_it_is_closed_is_logged(
    build: Build, exchanges: Any, caplog: pytest.LogCaptureFixture
) -> None:
    source = Source(10)

    def close() -> None:
        raise ValueError("broken")

    source.close = close  # type: ignore[method-assign]
    begin(build, exchanges, source, 3).canceled()
    assert "a handler failed while its items were closed" in caplog.text


@pytest.mark.parametrize("source", [None, 5, b"bytes", "text"])
def test_source_without_items_raises(build: Build, exchanges: Any, source: object) -> None:
    with pytest.raises(build.module("weirpool.errors").LocalError, match=rf"not {type(source).__name__}"):
        begin(build, exchanges, source)


# Items that may be sent in parts.


def test_parts_of_a_large_item_are_paid_by_later_turns(build: Build, exchanges: Any) -> None:
    fragment_bytes = exchanges.flow.settings.fragment_bytes
    items = [b"x" * (3 * fragment_bytes), b"small"]
    parts = 0

    def send_run(stream_id: int, run: Any, start: int = 0) -> int:
        nonlocal parts
        parts += 1
        return 0 if parts < 3 else real(stream_id, run, start)

    real = exchanges.session.send_run
    exchanges.session.send_run = send_run
    half = begin(build, exchanges, iter(items), 5)
    assert parts == 1
    for expected in (2, 3):
        assert unpaid_turns(half) in (fragment_bytes // quantum(build) - 1, fragment_bytes // quantum(build))
        assert (parts, sent(exchanges)) == (expected, items[: expected - 2])
    unpaid_turns(half)
    assert sent(exchanges) == items
    assert completed(exchanges)


def unpaid_turns(half: Any) -> int:
    """Run turns of a half until it sends; return how many turns only paid for earlier ones."""
    count = 0
    while not half.step():
        count += 1
    return count


@pytest.mark.parametrize("route", ["demo.plain", "demo.awaited"])
async def test_streams_that_share_their_credit_wait_for_each_other(route: str) -> None:
    """In River all streams of a session share what the peer must acknowledge."""
    service = Service()

    @service.stream("demo.plain")
    def plain(request: Payload) -> Iterator[bytes]:
        yield from numbers(0, 300)

    @service.stream("demo.awaited")
    async def awaited(request: Payload) -> AsyncIterator[bytes]:
        for number in numbers(0, 300):
            await asyncio.sleep(0)
            yield number

    few = Settings(max_unacked=20)
    async with weirpool.serve(service, "river+memory://shared", settings=few) as server:
        async with weirpool.connect(server.urls[0]) as peer:

            async def read() -> list[bytes]:
                async with peer.stream(route, b"0") as items:
                    return [item.data async for item in items]

            assert await asyncio.gather(*(read() for _ in range(5))) == [numbers(0, 300)] * 5
