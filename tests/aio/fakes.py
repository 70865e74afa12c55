"""Fakes of the neighbors of one module of aio: they record calls, and do what a test sets up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from tests.builds import Build


class FakeSession:
    """A session that sends nothing.

    Attributes:
        told: The recorded verbs, in order, each with its arguments but the time.
        left: The remaining credit of each stream; a stream without an entry has none.
        closed: Streams whose sending half has ended.
        events: The next events.
        output: The next output.

    """

    def __init__(self, build: Build) -> None:
        self._stream_closed = build.module("weirpool.errors").StreamClosed
        self.told: list[tuple[Any, ...]] = []
        self.left: dict[int, int] = {}
        self.closed: set[int] = set()
        self.events: list[Any] = []
        self.output: list[bytes] = []
        self.timer: float | None = None
        self.link_wanted = True
        self.sheds = False
        self.calls_by_streams = False
        self.counts_request = True
        self.item_errors: Any = None
        self.full = False
        self.durable: Any = None
        self.linked_at: float | None = None
        self.account = build.module("weirpool.account").Account(1 << 40)
        self.excused = False
        self.refused = 0

    def ask_kinds(self, kind_of: Callable[[str], Any]) -> None:
        self.kind_of = kind_of

    def items(self, stream_id: int) -> list[bytes]:
        """Return the data of all items that were sent on a stream."""
        return [data for verb, *rest in self.told if verb == "send" and rest[0] == stream_id for data in rest[1]]

    def verbs(self, *names: str) -> list[tuple[Any, ...]]:
        """Return the recorded calls of these verbs."""
        return [each for each in self.told if each[0] in names]

    # For the driver.

    def link_up(self, now: float) -> None:
        self.told.append(("link_up",))

    def link_down(self, now: float, error: Exception | None) -> None:
        self.told.append(("link_down", error))

    def receive(self, data: bytes, now: float, frames: int = 0) -> bool:
        self.told.append(("receive", data))
        return False

    def confirm(self) -> None:
        self.told.append(("confirm",))

    def progressed(self, now: float) -> None:
        self.told.append(("progressed",))

    def handle_timer(self, now: float) -> None:
        self.told.append(("handle_timer",))
        self.timer = None

    def next_timer(self) -> float | None:
        return self.timer

    def take_events(self) -> list[Any]:
        events, self.events = self.events, []
        return events

    def take_output(self) -> list[bytes]:
        output, self.output = self.output, []
        return output

    def close(self, now: float, error: Exception | None = None) -> None:
        self.told.append(("close", error))

    def shed(self, now: float, error: Exception) -> bool:
        self.told.append(("shed", error))
        return self.sheds

    def is_ours(self, stream_id: int) -> bool:
        return stream_id % 2 == 1

    # Verbs of streams.

    def send(self, stream_id: int, payload: Any, done: bool = False) -> int:
        if stream_id in self.closed:
            raise self._stream_closed(f"stream {stream_id}")
        self.told.append(("send", stream_id, [payload.data], done))
        self.left[stream_id] = self.left.get(stream_id, 0) - 1
        return self.left[stream_id]

    def send_run(self, stream_id: int, run: Any, start: int = 0) -> int:
        if stream_id in self.closed:
            raise self._stream_closed(f"stream {stream_id}")
        count = min(len(run) - start, self.left[stream_id])
        self.told.append(("send", stream_id, [each.data for each in run.payloads(start, start + count)], False))
        self.left[stream_id] -= count
        return count

    def credit(self, stream_id: int) -> int:
        return self.left.get(stream_id, 0)

    def push(self, metadata: bytes, stream_id: int = 0) -> None:
        self.told.append(("push", stream_id, metadata))

    def complete(self, stream_id: int) -> None:
        self.told.append(("complete", stream_id))

    def fail(self, stream_id: int, error: BaseException) -> None:
        self.told.append(("fail", stream_id, error))

    def request(self, stream_id: int, count: int) -> None:
        self.told.append(("request", stream_id, count))

    def cancel(self, stream_id: int, metadata: bytes | None = None) -> None:
        self.told.append(("cancel", stream_id))


class FakeLoop:
    """Queues callbacks until `turn` runs them."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], object]] = []

    def call_soon(self, function: Callable[..., object], *arguments: Any) -> None:
        self.soon.append(lambda: function(*arguments))

    def create_future(self) -> None:
        raise AssertionError("nothing here waits for a reply")

    def time(self) -> float:
        return 0.0

    def turn(self) -> None:
        soon, self.soon = self.soon, []
        for call in soon:
            call()


def fake_exchanges(build: Build, loop: asyncio.AbstractEventLoop | FakeLoop) -> Any:
    """Return the exchanges of a session that sends nothing, for pumps and handlers.

    They record the errors and handlers of failed streams in `failed`, ended sending halves in `ended`, and the number
    of writes in `flow.writes`. They have a `service`.
    """
    flows, exchanges = build.module("weirpool.aio.flow"), build.module("weirpool.aio.exchanges")

    class FakeFlow(flows.Flow):  # type: ignore[name-defined, misc]
        writes = 0

        def write(self) -> None:
            self.writes += 1

        def schedule_write(self, size: int = 0) -> None:
            """Do nothing."""

    class FakeExchanges(exchanges.Exchanges):  # type: ignore[name-defined, misc]
        def fail(self, stream_id: int, error: BaseException, name: str) -> None:
            self.failed.append((error, name))

        def half_ended(self, half: Any, stream_id: int, name: str) -> None:
            self.ended.append(half)

    settings = build.module("weirpool.settings").Settings()
    flow = FakeFlow(loop, FakeSession(build), settings, fake_connection(build), lambda: None)
    flow.paused = False
    made = FakeExchanges(flow)
    made.failed, made.ended = [], []
    made.service = build.module("weirpool.aio.service").Service()
    return made


def fake_connection(build: Build, address: str = "tcp://peer:1", is_client: bool = False) -> Any:
    return build.module("weirpool.connection").Connection("rsocket", address, is_client)


class FakeHalf:
    """A sending half that records its calls."""

    stream_id = 1

    def __init__(self) -> None:
        self.held = 0
        self.told: list[str] = []

    def granted(self) -> None:
        self.told.append("granted")

    def step(self) -> int:
        self.told.append("stepped")
        return 1

    def canceled(self, metadata: bytes | None = None) -> None:
        self.told.append("canceled")


class FakeLink:
    """A link that records what is written.

    Attributes:
        unfinished: Bytes of an incomplete message; set by a test.
        unread: Bytes that wait because reading is paused; set by a test.
        closing: Whether output is discarded; set by a test.
        written: What was written, in order.
        waiting: Bytes that the network has not accepted; set by a test.
        taken: Bytes that it has accepted; set by a test.
        told: The other recorded calls.

    """

    def __init__(self, receiver: Any = None) -> None:
        self.receiver = receiver
        self.written: list[bytes] = []
        self.unfinished = self.unread = 0
        self.closing = False
        self.waiting = 0
        self.taken = 0
        self.told: list[str] = []

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def is_closing(self) -> bool:
        return self.closing

    def get_extra_info(self, name: str) -> None:
        """Return None, because the link is not encrypted."""

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def progress(self) -> tuple[int, int]:
        return self.waiting, self.taken

    def pause_reading(self) -> None:
        self.told.append("pause_reading")

    def resume_reading(self) -> None:
        self.told.append("resume_reading")

    def close(self) -> None:
        self.told.append("close")

    def abort(self) -> None:
        self.told.append("abort")


class Source:
    """A plain iterator of numbers that records how many were taken, and whether it was closed."""

    def __init__(self, count: int, width: int = 0) -> None:
        self.count = count
        self.width = width
        self.taken = 0
        self.closed = 0

    def __iter__(self) -> Source:
        return self

    def __next__(self) -> bytes:
        if self.taken == self.count:
            raise StopIteration
        self.taken += 1
        return b"%0*d" % (self.width, self.taken - 1)

    def close(self) -> None:
        self.closed += 1


class AsyncSource:
    """An async iterator of numbers that records how many were taken, and whether it was closed."""

    def __init__(self, *items: Any) -> None:
        self.items = items
        self.taken = 0
        self.closed = 0

    async def __aiter__(self) -> AsyncIterator[Any]:
        try:
            for item in self.items:
                self.taken += 1
                if isinstance(item, Exception):
                    raise item
                yield item
                await asyncio.sleep(0)
        finally:
            self.closed += 1
