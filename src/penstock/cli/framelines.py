"""One direction of a connection as lines: its bytes, cut into frames or messages as its protocol does."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from ..errors import FrameError, SessionError

if TYPE_CHECKING:
    from ..rsocket.dialect import Dialect
    from ..wire.rsocket.frames import Frame

__all__ = ["RSocketWay", "Way", "way_of"]

MOST_BYTES: Final = 1 << 26
"""Of a message of River's that is shown; a longer one is not held for that."""


class Way(Protocol):
    """One direction."""

    def lines(self, data: bytes) -> list[str]:
        """Return a line for each frame that is whole with `data`."""


def way_of(protocol: str, secrets: bool) -> Callable[[], Way] | None:
    """Return what makes a direction of a connection; None for the RSocket family, whose bytes must tell the dialect.

    Args:
        protocol: What the connection speaks.
        secrets: Show what is secret, too.

    """
    if protocol == "river":
        return partial(RiverWay, secrets)
    return ReactiveStreamsWay if protocol == "reactive-streams" else None


class RSocketWay:
    """Frames of a dialect of RSocket's family.

    Args:
        dialect: It.
        mime: What the connection's metadata is.
        secrets: Show what is secret, too.

    """

    def __init__(self, dialect: Dialect, mime: str, secrets: bool) -> None:
        from ..wire.framing import Deframer
        from .hiding import Hiding

        self._name = dialect.name
        self._codec = dialect.codec()
        self._deframer: Deframer | None = Deframer(self._codec.prefix_bytes, min_frame_bytes=self._codec.header_bytes)
        self._hiding = None if secrets else Hiding(mime)

    def lines(self, data: bytes) -> list[str]:
        """Return a line for each frame that is whole with `data`."""
        found: list[str] = []
        deframer = self._deframer
        if deframer is None:
            return found
        deframer.feed(data)
        try:
            while deframer.next():
                found.append(self._line(deframer.buffer, deframer.start, deframer.end))
        except FrameError as error:
            # Nobody knows where the next frame begins.
            self._deframer = None
            found.append(_lost(error))
        return found

    def _line(self, buffer: bytes, start: int, end: int) -> str:
        from ..wire.rsocket.dump import line

        try:
            frame: Frame = self._codec.decode(buffer, start, end)
        except FrameError as error:
            return f"no frame of {end - start} bytes: {error}"
        return line(frame, self._name, None if self._hiding is None else self._hiding.of(frame))


class RiverWay:
    """Messages of River's, in either codec.

    Args:
        secrets: Show what is secret, too.

    """

    def __init__(self, secrets: bool) -> None:
        from ..wire.framing import deframer

        self._deframer = deframer(MOST_BYTES, pass_over=True)
        self._secrets = secrets

    def lines(self, data: bytes) -> list[str]:
        """Return a line for each message that is whole with `data`."""
        from ..wire.river.dump import line

        found: list[str] = []
        frames = self._deframer
        frames.feed(data)
        while frames.next():
            if frames.oversized is not None:
                found.append(f"a message of {frames.oversized.size} bytes, which is too long to be shown")
                continue
            message = frames.buffer[frames.start : frames.end]
            try:
                found.append(line(message, self._secrets))
            except FrameError as error:
                found.append(f"no message of {len(message)} bytes: {error}")
        return found


class ReactiveStreamsWay:
    """Messages of reactive-streams-io."""

    def __init__(self) -> None:
        from ..wire.reactivestreams.codec import EXTENDED
        from ..wire.reactivestreams.decoder import Decoder

        self._decoder: Decoder | None = Decoder(runs=False)
        self._decoder.extensions.update(EXTENDED)

    def lines(self, data: bytes) -> list[str]:
        """Return a line for each message that is whole with `data`."""
        from ..wire.reactivestreams.codec import Message
        from ..wire.reactivestreams.dump import line

        found: list[str] = []
        decoder = self._decoder
        if decoder is None:
            return found
        decoder.feed(data)
        try:
            while (message := decoder.next()) is not None:
                # There are no runs of items: they are read one by one.
                if isinstance(message, Message):
                    found.append(line(message))
        except SessionError as error:
            self._decoder = None
            found.append(_lost(error))
        return found


def _lost(error: Exception) -> str:
    """Return what is said where nobody knows any more where the next frame begins."""
    return f"no frame, and nothing more can be shown: {error}"
