"""Only Weirpool's codec of RSocket 1.0."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from weirpool.wire.columns import ColumnBuilder
from weirpool.wire.framing import Deframer
from weirpool.wire.rsocket.codec import Codec
from weirpool.wire.rsocket.frames import NEXT

from . import PAYLOAD, READ_BYTES


class Client:
    def __init__(self) -> None:
        self.codec = Codec()
        frame = self.codec.payload_frame(1, NEXT, None, PAYLOAD)
        self.frames = READ_BYTES // len(frame)
        self.read = frame * self.frames

    async def decode(self, count: int) -> None:
        """Split and decode frames, to one object each."""
        deframer = Deframer()
        for _ in range(count // self.frames + 1):
            deframer.feed(self.read)
            while deframer.next():
                self.codec.decode(deframer.buffer, deframer.start, deframer.end)

    async def columns(self, count: int) -> None:
        """Split frames and collect their data in Arrow buffers, without an object for each."""
        deframer = Deframer()
        builder = ColumnBuilder()
        for _ in range(count // self.frames + 1):
            deframer.feed(self.read)
            while deframer.next():
                run = self.codec.scan_run(deframer, self.frames)
                assert run is not None
                builder.append(run, 0, len(run))
            if len(builder) > 8192:
                builder.finish()

    async def encode(self, count: int) -> None:
        """Encode frames with their prefixes."""
        for _ in range(count):
            self.codec.payload_frame(1, NEXT, None, PAYLOAD)


@asynccontextmanager
async def connected(address: str, tuned: bool) -> AsyncIterator[Client]:
    yield Client()
