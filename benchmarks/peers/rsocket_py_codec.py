"""Only rsocket-py's codec."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from rsocket.frame import PayloadFrame, serialize_prefix_with_frame_size_header
from rsocket.frame_parser import FrameParser

from . import PAYLOAD, READ_BYTES


class Client:
    def __init__(self) -> None:
        self.frame = PayloadFrame()
        self.frame.stream_id = 1
        self.frame.data = PAYLOAD
        self.frame.metadata = None
        self.frame.flags_next = True
        frame = self.encoded()
        self.frames = READ_BYTES // len(frame)
        self.read = frame * self.frames

    def encoded(self) -> bytes:
        parts = [serialize_prefix_with_frame_size_header(self.frame)]
        self.frame.write_data_metadata(parts.append)
        return b"".join(parts)

    async def decode(self, count: int) -> None:
        parser = FrameParser()
        for _ in range(count // self.frames + 1):
            async for _frame in parser.receive_data(self.read):
                pass

    async def encode(self, count: int) -> None:
        for _ in range(count):
            self.encoded()


@asynccontextmanager
async def connected(address: str, tuned: bool) -> AsyncIterator[Client]:
    yield Client()
