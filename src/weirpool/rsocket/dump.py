"""Frames of a dialect in human-readable form. See :class:`weirpool.protocols.Dump`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from ..errors import FrameError, ProtocolError
from ..settings import Settings
from ..texts import quoted, shown_line
from ..wire.framing import Deframer, prefixed
from ..wire.rsocket.dump import codec_of, from_object, line, read_frames, to_object
from ..wire.rsocket.frames import FOLLOWS, Frame, SetupFrame
from .detect import detect
from .dialect import DIALECTS, RSOCKET_1_0, Dialect
from .extensions.metadata import entries
from .extensions.mimes import COMPOSITE

__all__ = ["FrameReader", "Hiding", "RSocketDump", "is_secret", "named"]


class RSocketDump:
    """See :class:`weirpool.protocols.Dump`.

    Args:
        version: The name of a dialect.

    """

    framings: Final = {"none": 0, "u24": 3, "u32-inclusive": 4}
    codecs: Final[tuple[str, ...]] = ()
    unit: Final = "frame"
    self_contained: Final = True

    def __init__(self, version: str) -> None:
        self._dialect = DIALECTS[version]

    def frames(self, data: bytes, prefix: int, codec: str) -> Iterator[dict[str, object]]:
        """Yield the frames in `data` as objects. See :meth:`weirpool.protocols.Dump.frames`."""
        name = self._dialect.name
        for length, frame in read_frames(data, name, prefix):
            fields = to_object(frame, name)
            yield fields if length is None else {"length": length, **fields}

    def encoder(self, prefix: int, codec: str) -> Callable[[Mapping[str, object]], bytes]:
        """Return a function that encodes objects. See :meth:`weirpool.protocols.Dump.encoder`."""
        name = self._dialect.name
        dialect_codec = codec_of(name)

        def encode(fields: Mapping[str, object]) -> bytes:
            frame = dialect_codec.encode(from_object(fields, name))
            return prefixed(frame, prefix) if prefix else frame

        return encode

    def detected(self, head: bytes, settings: Settings) -> RSocketDump | None:
        """Return the dump of the dialect that `head` begins with. See :class:`weirpool.protocols.Dump`."""
        served = DIALECTS if self._dialect is RSOCKET_1_0 else (self._dialect.name,)
        try:
            dialect = detect(head, settings, served)
        except ProtocolError:
            return None
        if dialect is None:
            return None
        found = RSocketDump(dialect.name)
        found._dialect = dialect
        return found

    def reader(self, mime: str, messages: bool, secrets: bool) -> FrameReader:
        """Return a reader of one direction of a connection. See :meth:`weirpool.protocols.Dump.reader`."""
        dialect = self._dialect.over_messages() if messages else self._dialect
        return FrameReader(dialect, mime or dialect.metadata_mime, secrets)


class FrameReader:
    """Formats one direction of a connection, one line for each frame.

    Args:
        dialect: The dialect.
        mime: The type of the connection's metadata.
        secrets: Whether to show secrets.

    """

    def __init__(self, dialect: Dialect, mime: str, secrets: bool) -> None:
        self._name = dialect.name
        self._codec = dialect.codec()
        self._deframer: Deframer | None = Deframer(self._codec.prefix_bytes, min_frame_bytes=self._codec.header_bytes)
        self._hiding = None if secrets else Hiding(mime)

    def lines(self, data: bytes) -> list[str]:
        """Return a line for each frame that `data` completes."""
        found: list[str] = []
        deframer = self._deframer
        if deframer is None:
            return found
        deframer.feed(data)
        try:
            while deframer.next():
                found.append(self._line(deframer.buffer, deframer.start, deframer.end))
        except FrameError as error:
            # It is not known where the next frame begins.
            self._deframer = None
            found.append(f"invalid frame, and nothing more can be shown: {error}")
        return found

    def _line(self, buffer: bytes, start: int, end: int) -> str:
        try:
            frame = self._codec.decode(buffer, start, end)
        except FrameError as error:
            return f"invalid frame of {end - start} bytes: {error}"
        return line(frame, self._name, None if self._hiding is None else self._hiding.of(frame))


class Hiding:
    """Hides secrets in the frames of one direction of a connection.

    Args:
        mime: The type of the connection's metadata.

    """

    def __init__(self, mime: str) -> None:
        self._mime = mime
        # Streams whose metadata continues in the next fragment, where the boundaries of entries are not known.
        self._unfinished: set[int] = set()

    def of(self, frame: Frame) -> Callable[[str, bytes], str | None]:
        """Return a function that formats byte fields of `frame`, for :func:`weirpool.wire.rsocket.dump.line`."""
        continued = frame.stream_id in self._unfinished
        if frame.flags & FOLLOWS and frame.metadata is not None:
            self._unfinished.add(frame.stream_id)
        elif not frame.flags & FOLLOWS:
            self._unfinished.discard(frame.stream_id)
        is_setup = isinstance(frame, SetupFrame)

        def show(name: str, data: bytes) -> str | None:
            # The token of a session is enough to resume it.
            if name == "token" or (is_setup and name == "data"):
                return hidden(data)
            if name != "metadata":
                return None
            return hidden(data) if continued else self._metadata(data, is_setup)

        return show

    def _metadata(self, data: bytes, is_setup: bool) -> str | None:
        if self._mime != COMPOSITE:
            return hidden(data) if is_setup or is_secret(self._mime) else None
        try:
            found = entries(data)
        except FrameError:
            # The metadata is incomplete or not composite, so it may contain secrets.
            return hidden(data)
        shown = (f"{named(mime)}={hidden(content) if is_secret(mime) else quoted(content)}" for mime, content in found)
        return f"[{' '.join(shown)}]"


def is_secret(mime: str) -> bool:
    """Return whether metadata of this type contains credentials. Some older types have other names."""
    return "authentication" in mime.lower()


def named(mime: str) -> str:
    """Return a MIME type, which may come from a peer, for display; RSocket's types without their common parts."""
    short = mime.removeprefix("message/x.rsocket.").removesuffix(".v0")
    return f'"{shown_line(short)}"' if " " in short else shown_line(short)


def hidden(data: bytes) -> str:
    """Return the text that is shown instead of a secret."""
    return f"hidden({len(data)})"
