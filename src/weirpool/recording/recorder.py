"""Writes a recording."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, BinaryIO, Final

from ..access.private import create_private
from ..aio.handlers import Request
from ..errors import ApplicationError
from ..payload import Payload
from .format import VERSION, Event, Head, encode, payload_fields

__all__ = ["Recorder"]

FLUSH_SECONDS: Final = 0.1
"""How long a line may stay in this process."""


class Recorder:
    """Appends events to a file. It keeps nothing in memory but a buffer of the file.

    Args:
        path: The file, which only its owner can read. It is replaced if it exists.
        url: Where the responses come from.

    Raises:
        LocalError: The file cannot be written.

    """

    def __init__(self, path: Path, url: str) -> None:
        # Metadata may contain credentials.
        self._file: BinaryIO = create_private(path)
        self._began = monotonic()
        self._flush: asyncio.TimerHandle | None = None
        self.streams = self.events = 0
        self._write(Head(VERSION, url, datetime.now(UTC).isoformat(timespec="milliseconds")))

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._flush is not None:
            self._flush.cancel()
        self._file.close()

    def watch(self, request: Request) -> RecordedStream:
        """Record a request; return what records the rest of its interaction."""
        self.streams += 1
        stream = RecordedStream(self, self.streams)
        kind = request.kind.name.lower()
        stream.note("request", kind=kind, route=request.route, **payload_fields(request.payload))
        return stream

    def note(self, event: Event) -> None:
        """Append an event."""
        self.events += 1
        self._write(event)
        if self._flush is None:
            self._flush = asyncio.get_running_loop().call_later(FLUSH_SECONDS, self._flushed)

    def elapsed(self) -> float:
        """Return the seconds since the begin."""
        return round(monotonic() - self._began, 6)

    def _write(self, line: Head | Event) -> None:
        if not self._file.closed:
            self._file.write(encode(line))

    def _flushed(self) -> None:
        self._flush = None
        if not self._file.closed:
            self._file.flush()


class RecordedStream:
    """Records one interaction; see :class:`weirpool.bridging.watching.StreamWatcher`."""

    def __init__(self, recorder: Recorder, number: int) -> None:
        self._recorder = recorder
        self._number = number

    def note(self, event: Any, **fields: Any) -> None:
        """Append an event of this interaction."""
        self._recorder.note(Event(self._recorder.elapsed(), self._number, event, **fields))

    def sent(self, item: Payload) -> None:
        """Record an item of the client."""
        self.note("sent", **payload_fields(item))

    def sent_end(self) -> None:
        """Record that the client sends no more items."""
        self.note("sent_end")

    def received(self, item: Payload) -> None:
        """Record an item of the server."""
        self.note("item", **payload_fields(item))

    def demanded(self, credit: int) -> None:
        """Record how many more items the client accepts."""
        self.note("demand", n=credit)

    def ended(self, error: Exception | None) -> None:
        """Record the end of the server's items."""
        if error is None:
            self.note("end")
        elif isinstance(error, ApplicationError):
            data = {} if error.data == error.message.encode() else payload_fields(Payload(error.data))
            self.note("error", code=error.code, message=error.message, **data)
        else:
            self.note("error", code=0x201, message=str(error))

    def canceled(self) -> None:
        """Record that the client wants no more items."""
        self.note("cancel")
