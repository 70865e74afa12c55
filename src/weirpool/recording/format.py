"""The file of a recording: one JSON object per line, appended as things happen; `docs/how-to/record-and-replay.md`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from ..depth import MAX_DEPTH, json_too_deep
from ..errors import LocalError
from ..payload import Payload

__all__ = ["VERSION", "Event", "Head", "decode_event", "encode", "events", "open_recording", "payload_fields"]

VERSION: Final = 1
MAX_LINE_BYTES: Final = 256 * 1024 * 1024
"""More than the largest item that Weirpool receives, as hex."""
MAX_SECONDS: Final = 1_000_000_000
"""Thirty years: timers of longer times overflow."""


class Head(Struct, omit_defaults=True):
    """The first line."""

    weirpool_recording: int = UNSET  # type: ignore[assignment]
    url: str = ""
    started: str = ""


class Event(Struct, omit_defaults=True):
    """A line.

    Attributes:
        t: Seconds since the begin of the recording, by a monotonic clock.
        stream: The number of the interaction, from 1.
        event: What happened. `request`, `sent`, `sent_end`, `demand` and `cancel` come from the client, `item`, `end`
            and `error` from the server.
        kind: Of a request: its kind.
        route: Of a request: its route.
        n: Of a demand: how many more items the client accepts from then on.
        code: Of an error: its code.
        message: Of an error: its text.
        data: Data as text.
        data_hex: Data that is not valid UTF-8.
        metadata: Metadata as text.
        metadata_hex: Metadata that is not valid UTF-8.

    """

    t: Annotated[float, Meta(ge=0, le=MAX_SECONDS)]
    stream: Annotated[int, Meta(ge=1, lt=2**53)]
    event: Literal["request", "sent", "sent_end", "demand", "cancel", "item", "end", "error"]
    kind: str = ""
    route: str = ""
    n: Annotated[int, Meta(ge=0, lt=2**53)] = 0
    code: Annotated[int, Meta(ge=0, lt=2**32)] | str = ""
    message: str = ""
    data: str | UnsetType = UNSET
    data_hex: str = ""
    metadata: str | UnsetType = UNSET
    metadata_hex: str | UnsetType = UNSET

    @property
    def payload(self) -> Payload:
        """The data and metadata.

        Raises:
            ValueError: One of them is not hex.

        """
        data = bytes.fromhex(self.data_hex) if isinstance(self.data, UnsetType) else self.data.encode()
        if isinstance(self.metadata, str):
            return Payload(data, self.metadata.encode())
        return Payload(data, bytes.fromhex(self.metadata_hex) if isinstance(self.metadata_hex, str) else None)


_EVENTS: Final = msgspec.json.Decoder(Event)
_HEADS: Final = msgspec.json.Decoder(Head)


def payload_fields(payload: Payload) -> dict[str, Any]:
    """Return the fields of an event for data and metadata."""
    fields: dict[str, Any] = {}
    try:
        fields["data"] = payload.data.decode()
    except UnicodeDecodeError:
        fields["data_hex"] = payload.data.hex()
    if payload.metadata is not None:
        try:
            fields["metadata"] = payload.metadata.decode()
        except UnicodeDecodeError:
            fields["metadata_hex"] = payload.metadata.hex()
    return fields


def encode(line: Head | Event) -> bytes:
    """Return a line with its break."""
    return msgspec.json.encode(line) + b"\n"


def decode_event(line: bytes, place: str) -> Event:
    """Return the event of a line. Raises LocalError if it has none; `place` names the line."""
    try:
        event: Event = _decoded(_EVENTS, line)
        # Its bytes may not be hex.
        _ = event.payload
    except (msgspec.MsgspecError, ValueError) as error:
        raise LocalError(f"{place} is damaged: {error}") from None
    return event


def _decoded(decoder: msgspec.json.Decoder[Any], line: bytes) -> Any:
    if json_too_deep(line) >= 0:
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
    return decoder.decode(line)


def open_recording(path: Path) -> tuple[BinaryIO, Head]:
    """Open a recording after its first line.

    Raises:
        LocalError: The file cannot be read, or is not a recording.

    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise LocalError(f"cannot read {str(path)!r}: {error.strerror}") from error
    try:
        head = _decoded(_HEADS, file.readline(MAX_LINE_BYTES))
    except (msgspec.MsgspecError, ValueError):
        head = Head()
    if head.weirpool_recording != VERSION:
        file.close()
        raise LocalError(f"{str(path)!r} is not a recording of version {VERSION}; record one with weirpool record")
    return file, head


def events(file: BinaryIO, name: str) -> Iterator[tuple[int, Event]]:
    """Yield the offset and the content of each line from the current position on.

    A last line without a break is ignored: the process that recorded has died.

    Raises:
        LocalError: A line before the last one is damaged.

    """
    while True:
        offset = file.tell()
        line = file.readline(MAX_LINE_BYTES)
        if not line.endswith(b"\n"):
            if len(line) == MAX_LINE_BYTES:
                raise LocalError(f"{name}, byte {offset}: a line is longer than {MAX_LINE_BYTES} bytes")
            return
        yield offset, decode_event(line, f"{name}, byte {offset}")
