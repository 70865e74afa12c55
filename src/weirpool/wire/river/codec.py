"""River v2.0, Wire format: encodes and decodes a TransportMessage in both codecs.

The envelope is decoded strictly. The payload's body stays encoded, and is decoded by its user. A message is one
WebSocket frame, or has a 32-bit big-endian length prefix that does not count itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from ...depth import json_too_deep, msgpack_too_deep, skip_json, skip_msgpack
from ...errors import FrameError, LocalError
from ..framing import PREFIX_BYTES, WINDOW
from . import scanning
from .apart import span_of_payload, start_of_payload
from .grammar import ACK, BODY_DEPTH, CANCEL, CLOSE, FIELDS, MAX_ID, MAX_NUMBER, OPEN, REQUIRED, RESULT_DEPTH, Type
from .message import Message
from .values import check_codec, json_body, json_to_send, msgpack_body, too_deep

__all__ = [
    "ACK",
    "CANCEL",
    "CLOSE",
    "CODECS",
    "MAX_ID",
    "MAX_NUMBER",
    "OPEN",
    "PREFIX_BYTES",
    "Id",
    "Message",
    "RiverCodec",
    "codec_of",
    "sent_data",
    "whole",
]

MAX_ROUTES: Final = 1_024
"""Maximum number of procedures whose encoded names are cached."""
CLOSE_BYTES: Final = 64
"""Maximum size of a ControlClose."""

Id = Annotated[str, Meta(max_length=MAX_ID)]
T = TypeVar("T")


_TYPES: Final[dict[Type, Any]] = {Type.ID: Id, Type.NUMBER: int | float, Type.OBJECT: dict[str, Any], Type.BODY: Raw}
_Envelope: Final[Any] = msgspec.defstruct(
    "_Envelope",
    [
        (field.attribute, _TYPES[field.type], msgspec.field(name=field.name))
        if field.required
        else (field.attribute, _TYPES[field.type] | UnsetType, msgspec.field(default=UNSET, name=field.name))
        for field in FIELDS
    ],
    omit_defaults=True,
)
"""River, TransportMessage, with the names on the wire."""
_OPTIONAL: Final = tuple(field.attribute for field in FIELDS if not field.required)
_QUOTED: Final = [f'"{field.name}"'.encode() for field in FIELDS]


@dataclass(eq=False)
class RiverCodec:
    """One of the two codecs of messages.

    Attributes:
        name: ``json`` or ``msgpack``, as in URLs.
        encode_value: Encodes an object.
        decode_value: Decodes bytes to an object of a given type.
        too_deep: Returns the offset at which data is nested too deeply; -1 if it is not.
        skip: Returns the end of the value that begins at an offset; -1 if it is malformed.
        received: Checks a body from a peer and its depth, and returns it; raises FrameError.
        to_send: Returns the body for data from a user; raises FrameError if it cannot be sent.
        check_names: Raises FrameError if an envelope has a field twice, because readers differ (THREATS 64).
        before: The bytes before the payload of `{ok: true, payload}`.
        after: The bytes after it.
        is_json: Whether it is JSON.
        data_mime: The MIME type of bodies.
        null: The body null.
        empty: The body of an object without fields.
        close: The body of a ControlClose.
        heartbeat: The body of a ControlAck.
        route_fields: Returns the fields with the name of a procedure, encoded once for each route.

    """

    name: str
    encode_value: Callable[[Any], bytes]
    decode_value: Callable[..., Any]
    too_deep: Callable[[bytes], int]
    skip: Callable[[bytes, int], int]
    received: Callable[..., bytes]
    to_send: Callable[[bytes], bytes]
    check_names: Callable[[bytes, Any], None]
    before: bytes
    after: bytes

    def __post_init__(self) -> None:
        self.is_json = self.name == "json"
        self.data_mime = f"application/vnd.river+{self.name}"
        self.null = self.encode_value(None)
        self.empty = self.encode_value({})
        self.close = self.encode_value({"type": "CLOSE"})
        self.heartbeat = self.encode_value({"type": "ACK"})
        self.route_fields = lru_cache(MAX_ROUTES)(self._route_fields)

    def encode(self, message: Message) -> bytes:
        """Return `message` as bytes, without a length prefix.

        Raises:
            LocalError: A field cannot be encoded.

        """
        fields = {field.attribute: getattr(message, field.attribute) for field in FIELDS}
        present = {name: value for name, value in fields.items() if value is not None}
        return self.encoded(_Envelope(**present | {"payload": Raw(message.payload)}))

    def encoded(self, value: object) -> bytes:
        """Return `value` as bytes.

        Raises:
            LocalError: It cannot be encoded.

        """
        try:
            return self.encode_value(value)
        except (msgspec.MsgspecError, UnicodeEncodeError, OverflowError) as error:
            raise LocalError(f"the message cannot be encoded: {error}") from error

    def field(self, name: str, value: object) -> bytes:
        """Return an encoded field that follows another one.

        Raises:
            LocalError: It cannot be encoded.

        """
        between = (b",", b":") if self.is_json else (b"", b"")
        return b"".join((between[0], self.encoded(name), between[1], self.encoded(value)))

    def _route_fields(self, route: str) -> bytes:
        """Return the fields with a procedure name, after other fields. Raises LocalError if `route` is invalid."""
        service, _, procedure = route.rpartition(".")
        if not service or not procedure:
            raise LocalError(f"the route {route!r} is not the name of a procedure; use service.procedure")
        return self.field("serviceName", service) + self.field("procedureName", procedure)

    def decode(self, data: bytes, start: int = 0, end: int | None = None, results: bool = False) -> Message:
        """Decode the message in ``data[start:end]``.

        Args:
            data: The bytes that contain the message.
            start: The index of the message.
            end: The index after the message; None for the end of `data`.
            results: Whether `Message.ok_payload` may be set instead of `payload`.

        Raises:
            FrameError: The envelope is malformed.

        """
        end = len(data) if end is None else end
        found = scanning.scan(data, start, end, self.is_json, results)
        return found or self.decode_any(data[start:end], results)

    def decode_any(self, data: bytes, results: bool = False) -> Message:
        """Decode the message `data` without the fast path, with precise errors.

        An invalid payload only ends its stream, not the session (THREATS 93): `Message.fault` is set.

        Args:
            data: The message.
            results: Whether its payload may be a result.

        Raises:
            FrameError: The envelope is malformed.

        """
        try:
            message = self._message(data)
        except FrameError:
            start = start_of_payload(data[:WINDOW], self.is_json)
            end = self.skip(data, start) if start > 0 else -1
            bare = self._without_payload(data[:start], data[end:]) if end > 0 else None
            if bare is None:
                raise
            message = bare
            message.payload = data[start:end]
        try:
            message.payload = self.received(message.payload, RESULT_DEPTH if results else BODY_DEPTH)
        except FrameError as error:
            message.fault = FrameError(f"the payload is {error.message}")
            message.payload = self.null
        return message

    def decode_ends(self, head: bytes, tail: bytes) -> Message | None:
        """Decode a message from its beginning and end, with null as its payload.

        Args:
            head: The beginning of the message.
            tail: The end of the message.

        Returns:
            None if the envelope around the payload is malformed or unusual.

        """
        span = span_of_payload(head, tail, self.is_json)
        if span is None:
            return None
        start, rest = span
        return self._without_payload(head[:start], tail[len(tail) - rest :])

    def _without_payload(self, before: bytes, after: bytes) -> Message | None:
        try:
            return self._message(before + self.null + after)
        except FrameError:
            return None

    def _message(self, data: bytes) -> Message:
        """Decode the message `data` without checking its payload. Raises FrameError if the envelope is malformed."""
        if (offset := self.too_deep(data)) >= 0:
            raise too_deep(offset)
        envelope: Any = self.value(data, _Envelope)
        self.check_names(data, envelope)
        return Message(
            envelope.id,
            envelope.from_,
            envelope.to,
            whole("seq", envelope.seq),
            whole("ack", envelope.ack),
            envelope.stream_id,
            whole("controlFlags", envelope.control_flags),
            bytes(envelope.payload),
            None if envelope.service_name is UNSET else envelope.service_name,
            None if envelope.procedure_name is UNSET else envelope.procedure_name,
            None if envelope.tracing is UNSET else envelope.tracing,
        )

    def value(self, data: bytes | Raw, type: type[T]) -> T:
        """Decode `data` as a `type`.

        Raises:
            FrameError: It is malformed, or has another type.

        """
        try:
            found: T = self.decode_value(data, type=type)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise FrameError(f"not a River message: {error}") from error
        return found

    def body(self, data: bytes) -> bytes:
        """Return the body for `data` from a user.

        Raises:
            LocalError: It is not a valid body for this codec.

        """
        if scanning.is_body(data, self.is_json):
            return data
        try:
            return self.to_send(data)
        except FrameError as error:
            raise LocalError(f"the data is not valid {self.name} for River: {error.message}") from error

    def is_close(self, body: bytes) -> bool:
        """Return whether a body is a ControlClose: ``{type: "CLOSE"}``."""
        # Most bodies are longer or shorter than any encoding of it.
        if not len(self.close) <= len(body) <= CLOSE_BYTES:
            return False
        try:
            return self.value(body, dict[str, object]) == {"type": "CLOSE"}
        except FrameError:
            return False


def _check_json_names(data: bytes, envelope: Any) -> None:
    # A field can only be duplicated if its name occurs twice, or if a name has escapes.
    if b"\\u" not in data and all(data.count(name) <= 1 for name in _QUOTED):
        return
    # Exclude the payload, which is not checked here and may be long.
    start = start_of_payload(data[:WINDOW], True)
    end = skip_json(data, start) if start > 0 else -1
    if end > 0:
        data = data[:start] + b"null" + data[end:]
    try:
        found = json.loads(data.decode(errors="replace"), object_pairs_hook=list)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"not a River message: {error}") from error
    names = [name for name, _ in found]
    if len(set(names)) != len(names):
        raise FrameError("the message has a field twice")


def _check_msgpack_names(data: bytes, envelope: Any) -> None:
    known = REQUIRED
    for name in _OPTIONAL:
        known += getattr(envelope, name) is not UNSET
    # Nearly all maps have at most 15 entries. Then the first byte contains their number.
    count = data[0] & 0x0F
    if data[0] == 0xDE:
        count = int.from_bytes(data[1:3], "big")
    elif data[0] == 0xDF:
        count = int.from_bytes(data[1:5], "big")
    if count != known and len(CODECS["msgpack"].value(data, dict[str, Raw])) != count:
        raise FrameError("the message has a field twice")


def whole(name: str, number: int | float) -> int:
    """Return `number`, which may be a float, as an integer from 0 to 2^53-1.

    Raises:
        FrameError: It is not a whole number in that range.

    """
    if not 0 <= number <= MAX_NUMBER or int(number) != number:
        raise FrameError(f"{name} is {number}; it must be a whole number from 0 to 2^53-1")
    return int(number)


CODECS: Final[dict[str, RiverCodec]] = {
    "json": RiverCodec(
        "json",
        msgspec.json.encode,
        msgspec.json.decode,
        json_too_deep,
        skip_json,
        json_body,
        json_to_send,
        _check_json_names,
        b'{"ok":true,"payload":',
        b"}",
    ),
    "msgpack": RiverCodec(
        "msgpack",
        msgspec.msgpack.encode,
        msgspec.msgpack.decode,
        msgpack_too_deep,
        skip_msgpack,
        msgpack_body,
        msgpack_body,
        _check_msgpack_names,
        b"\x82\xa2ok\xc3\xa7payload",
        b"",
    ),
}


def codec_of(name: str) -> RiverCodec:
    """Return the codec with that name.

    Raises:
        LocalError: The name is unknown.

    """
    check_codec(name)
    return CODECS[name]


def sent_data(mime: str, data: bytes) -> bytes:
    """Return an item's data as a server sends it: JSON without white space. Data that cannot be sent stays as it is."""
    codec = CODECS["msgpack" if mime.endswith("msgpack") else "json"]
    try:
        return codec.body(data) if data else codec.null
    except LocalError:
        return data
