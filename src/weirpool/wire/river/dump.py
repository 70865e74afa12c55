"""Human-readable River messages: a JSON object or a line of text for each message."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, ValidationError, convert, field

from ...errors import FrameError, LocalError
from ...texts import shortened, shown_line
from ..framing import PREFIX_BYTES, deframer, framed
from .codec import Id, codec_of
from .grammar import CODEC_NAMES, FIELDS, FLAGS, MAX_NUMBER, Type
from .message import Message
from .values import decode_value, from_json, shown_value

__all__ = ["MessageReader", "RiverDump", "from_object", "line", "read_messages"]

Number = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]
MAX_SHOWN_BYTES: Final = 1 << 26
"""Maximum size of a message to show; longer ones are not kept."""
HANDSHAKES: Final = ("HANDSHAKE_REQ", "HANDSHAKE_RESP", "REHANDSHAKE_REQ", "REHANDSHAKE_RESP")
CONTROLS: Final = ("ACK", "CLOSE", *HANDSHAKES)
SECRETS: Final = ("sessionId", "metadata", "metdata")
"""Fields to hide: a session's id is enough to resume it, and a client's metadata may contain credentials."""


def read_messages(data: bytes, codec: str, prefixed: bool = False) -> Iterator[dict[str, Any]]:
    """Yield the messages in `data` as JSON-compatible objects.

    Args:
        data: One message; with `prefixed` any number of messages.
        codec: The codec of the messages.
        prefixed: Whether each message has a length prefix.

    Raises:
        FrameError: A message is malformed or incomplete.

    """
    at = 0
    while at < len(data):
        if not prefixed:
            yield _shown(data, codec)
            return
        start = at + PREFIX_BYTES
        end = start + int.from_bytes(data[at:start], "big")
        if end > len(data):
            raise FrameError(f"the message is incomplete: it ends at byte {end}, and there are {len(data)}", at)
        yield {"length": end - start, **_shown(data[start:end], codec)}
        at = end


def _shown(data: bytes, codec: str) -> dict[str, Any]:
    message = _whole(data, codec)
    shown = {field.name: getattr(message, field.attribute) for field in FIELDS if field.type is not Type.BODY}
    shown = {name: value for name, value in shown.items() if value is not None}
    shown["controlFlags"] = [name for bit, name in FLAGS.items() if message.control_flags & bit]
    # Bytes and big integers are shown in the form of the JSON codec.
    body = shown_value(decode_value(message.payload, codec))
    return {**shown, "payload": codec_of("json").value(body, object)}


class _Object(Struct, rename="camel", forbid_unknown_fields=True):
    """A message in the format of `read_messages`; `length` is ignored."""

    id: Id
    from_: Id = field(name="from")
    to: Id
    seq: Number
    ack: Number
    stream_id: Id
    control_flags: list[Literal["ACK", "OPEN", "CANCEL", "CLOSE"]]
    payload: Any
    service_name: Id | None = None
    procedure_name: Id | None = None
    tracing: dict[str, Any] | None = None
    length: int = 0


def from_object(value: Mapping[str, object], codec: str) -> bytes:
    """Return the message for an object in the format of `read_messages`, without a length prefix.

    Raises:
        LocalError: A field is missing, unknown, of the wrong type or out of range.

    """
    try:
        shown = convert(value, _Object)
    except ValidationError as error:
        raise LocalError(f"not a River message: {error}") from None
    values = {field.attribute: getattr(shown, field.attribute) for field in FIELDS}
    values["control_flags"] = sum({bit for bit, name in FLAGS.items() if name in shown.control_flags})
    values["payload"] = from_json(json.dumps(shown.payload).encode(), codec)
    return codec_of(codec).encode(Message(**values))


def line(data: bytes, secrets: bool = False) -> str:
    """Return a message as one line of text without control characters.

    It begins with the type of a control message, else with DATA.

    Args:
        data: The message, without a length prefix, in either codec.
        secrets: Whether to show session ids and metadata of handshakes.

    Raises:
        FrameError: It is malformed.

    """
    # A JSON object begins with a brace, a MessagePack map never does.
    codec = "json" if data[:1] == b"{" else "msgpack"
    message = _whole(data, codec)
    flags = int(message.control_flags)
    value = decode_value(bytes(message.payload), codec)
    control = value.get("type") if isinstance(value, dict) else None
    known = control in CONTROLS
    words = [str(control) if known else "DATA", f"stream={shown_line(message.stream_id)}"]
    words += [name.lower() for bit, name in FLAGS.items() if flags & bit]
    if control in HANDSHAKES[:2]:
        # The numbers of handshakes have no meaning.
        words += [f"from={shown_line(message.from_)}", f"to={shown_line(message.to)}"]
    else:
        words += [f"seq={message.seq}", f"ack={message.ack}"]
    if isinstance(message.service_name, str) or isinstance(message.procedure_name, str):
        words.append(f"procedure={shown_line(f'{message.service_name}.{message.procedure_name}')}")
    if not known:
        words.append(f"payload={_text(value)}({len(bytes(message.payload))})")
    elif control in HANDSHAKES:
        words += [f"{name}={shown}" for name, shown in _fields(value, secrets)]
    return " ".join(words)


def _whole(data: bytes, codec: str) -> Message:
    """Decode the message `data`. Raises FrameError if it or its payload is malformed."""
    known = codec_of(codec)
    message = known.decode_any(data, True)
    if message.fault is not None:
        raise FrameError(message.fault.message)
    return message


def _fields(value: dict[str, Any], secrets: bool) -> Iterator[tuple[str, str]]:
    """Yield the fields of a handshake and of its inner objects in the form in which they are shown.

    MessagePack also allows names that are not strings.
    """
    for name, inner in value.items():
        if name in SECRETS and not secrets:
            yield name, "hidden"
        elif isinstance(inner, dict) and name not in SECRETS:
            yield from _fields(inner, secrets)
        elif name != "type":
            yield shown_line(str(name)), shortened(inner) if isinstance(inner, str) else _text(inner)


def _text(value: Any) -> str:
    return shortened(shown_value(value).decode())


class RiverDump:
    """See :class:`weirpool.protocols.Dump`.

    Args:
        version: The version of the protocol; there is one.

    """

    framings: Final = {"none": 0, "u32": PREFIX_BYTES}
    codecs: Final = CODEC_NAMES
    unit: Final = "message"
    self_contained: Final = True

    def __init__(self, version: str) -> None:
        pass

    def frames(self, data: bytes, prefix: int, codec: str) -> Iterator[dict[str, object]]:
        """Yield the messages in `data` as objects. See :meth:`weirpool.protocols.Dump.frames`."""
        return read_messages(data, codec, prefix > 0)

    def encoder(self, prefix: int, codec: str) -> Callable[[Mapping[str, object]], bytes]:
        """Return a function that encodes objects. See :meth:`weirpool.protocols.Dump.encoder`."""
        with_length = framed if prefix else bytes
        return lambda fields: with_length(from_object(fields, codec))

    def detected(self, head: bytes, settings: object) -> RiverDump:
        """Return this dump: there is one version."""
        return self

    def reader(self, mime: str, messages: bool, secrets: bool) -> MessageReader:
        """Return a reader of one direction of a connection. See :meth:`weirpool.protocols.Dump.reader`."""
        return MessageReader(secrets)


class MessageReader:
    """Formats one direction of a connection in either codec, one line for each message.

    Args:
        secrets: Whether to show secrets.

    """

    def __init__(self, secrets: bool) -> None:
        self._deframer = deframer(MAX_SHOWN_BYTES, pass_over=True)
        self._secrets = secrets

    def lines(self, data: bytes) -> list[str]:
        """Return a line for each message that `data` completes."""
        found: list[str] = []
        frames = self._deframer
        frames.feed(data)
        while frames.next():
            if frames.oversized is not None:
                found.append(f"a message of {frames.oversized.size} bytes is too long to be shown")
                continue
            message = frames.buffer[frames.start : frames.end]
            try:
                found.append(line(message, self._secrets))
            except FrameError as error:
                found.append(f"invalid message of {len(message)} bytes: {error}")
        return found
