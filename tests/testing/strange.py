"""More wrong publishers: each is a class with one fault, by its name in `STRANGE`.

``python -m tests.testing.strange PROTOCOL FAULT`` serves one of them over TCP, and prints its URL.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from tests.testing.faulty import FaultyServer, Sending, faulty
from weirpool import Payload
from weirpool.events import CreditGranted, Requested
from weirpool.protocols import spec_of


class Holding(FaultyServer):
    """Writes what one call of `step` sends in another order."""

    held: list[bytes] | None = None

    def write(self, frames: list[bytes]) -> None:
        if self.held is None:
            super().write(frames)
        else:
            self.held += frames

    def step(self, stream_id: int) -> None:
        self.held = []
        super().step(stream_id)
        frames, self.held = self.held, None
        self.write(self.ordered(frames, self.streams[stream_id].over))

    def ordered(self, frames: list[bytes], over: bool) -> list[bytes]:
        return frames


class AnotherLoop(Holding):
    """Sends items from another event loop, so that the end overtakes them."""

    def ordered(self, frames: list[bytes], over: bool) -> list[bytes]:
        return frames[-1:] + frames[:-1] if over else frames


class TwoThreads(Holding):
    """Sends every second item from another thread."""

    def ordered(self, frames: list[bytes], over: bool) -> list[bytes]:
        items, end = (frames[:-1], frames[-1:]) if over else (frames, [])
        return items[1::2] + items[::2] + end


class EndsTwice(FaultyServer):
    """Completes a stream twice, or fails it twice."""

    def end(self, stream_id: int, sending: Sending) -> None:
        before = len(self.written)
        super().end(stream_id, sending)
        self.write(self.written[before:])


class ItemAfterError(FaultyServer):
    """Sends an item after an error."""

    def fail(self, stream_id: int) -> None:
        super().fail(stream_id)
        self.write(self.streams[stream_id].last)


class NullItem(FaultyServer):
    """Sends an empty item in place of one that was requested by itself."""

    def item(self, sending: Sending) -> Payload:
        return Payload() if sending.grants else super().item(sending)


class NoOnSubscribe(FaultyServer):
    """Never confirms a subscription."""

    def respond(self, output: list[bytes], events: list[object]) -> None:
        if not any(isinstance(event, Requested) for event in events):
            super().respond(output, events)


class LateOnSubscribe(FaultyServer):
    """Confirms a subscription after its first items."""

    late: Sequence[bytes] = ()

    def respond(self, output: list[bytes], events: list[object]) -> None:
        if any(isinstance(event, Requested) for event in events):
            self.late = output
        else:
            super().respond(output, events)

    def begin(self, stream_id: int, route: str) -> None:
        super().begin(stream_id, route)
        self.write(list(self.late))


class ReplacesDemand(FaultyServer):
    """Takes a request as the whole demand, instead of adding it, and serves it in the next turn of the loop."""

    def take(self, event: object) -> None:
        if isinstance(event, CreditGranted):
            self.streams[event.stream_id].credit = 0
        super().take(event)

    def granted(self, stream_id: int, sending: Sending) -> None:
        self.loop.call_soon(super().granted, stream_id, sending)


class WrapsDemand(FaultyServer):
    """Counts demand in a signed number, which the greatest request makes negative."""

    def granted(self, stream_id: int, sending: Sending) -> None:
        greatest = spec_of(self.protocol).max_request
        if sending.total > greatest:
            sending.credit -= 2 * (greatest + 1)
        super().granted(stream_id, sending)


class Recurses(FaultyServer):
    """Calls itself for each item that is requested, and fails when the stack is too deep."""

    def granted(self, stream_id: int, sending: Sending) -> None:
        try:
            self.descend(2 * sending.grants)
        except RecursionError:
            self.fail(stream_id)
        else:
            super().granted(stream_id, sending)

    def descend(self, depth: int) -> None:
        if depth:
            self.descend(depth - 1)


class CancelsAll(FaultyServer):
    """Ends all streams of a connection when one of them is canceled."""

    def cancel(self, stream_id: int) -> None:
        for each in self.streams.values():
            each.over = True


class AnswersNoRefusal(FaultyServer):
    """Says nothing about streams that it does not have."""

    def fail(self, stream_id: int) -> None:
        if self.streams[stream_id].route.startswith("faulty."):
            super().fail(stream_id)


class ClosesInsteadOfFailing(FaultyServer):
    """Closes the connection when a stream fails."""

    def fail(self, stream_id: int) -> None:
        if self.streams[stream_id].route == "faulty.failing":
            self.link.abort()
        else:
            super().fail(stream_id)


class EmptyFails(FaultyServer):
    """Fails a stream that has no items."""

    def end(self, stream_id: int, sending: Sending) -> None:
        if sending.route == "faulty.empty":
            self.fail(stream_id)
        else:
            super().end(stream_id, sending)


STRANGE: dict[str, type[FaultyServer]] = {
    "answers no refusal": AnswersNoRefusal,
    "another loop": AnotherLoop,
    "cancels all": CancelsAll,
    "closes instead of failing": ClosesInsteadOfFailing,
    "empty fails": EmptyFails,
    "ends twice": EndsTwice,
    "item after error": ItemAfterError,
    "late onSubscribe": LateOnSubscribe,
    "no onSubscribe": NoOnSubscribe,
    "null item": NullItem,
    "recurses": Recurses,
    "replaces demand": ReplacesDemand,
    "two threads": TwoThreads,
    "wraps demand": WrapsDemand,
}


async def _main(protocol: str, fault: str) -> None:
    async with faulty(protocol, make=STRANGE[fault], place="tcp://127.0.0.1:0") as published:
        print(published.url, flush=True)
        await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
