"""River v2.0, Wire format: a TransportMessage as bytes, and back, in either codec.

The envelope is decoded strictly. The payload's body stays the bytes that it travels as: whoever knows what it is
decodes it. A message is one WebSocket frame, or has a 32-bit big-endian length before it that counts nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from ..errors import FrameError, LocalError
from . import river_scanning
from .river_depth import MAX_DEPTH, check_json_depth, check_msgpack_depth
from .river_message import Message

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
    "whole",
]

ACK: Final = 0b00001
"""River, Clients, servers, and RPCs: the message is a heartbeat."""
OPEN: Final = 0b00010
CANCEL: Final = 0b00100
CLOSE: Final = 0b01000

PREFIX_BYTES: Final = 4
MAX_NUMBER: Final = (1 << 53) - 1
"""What every peer can count to."""
MAX_ID: Final = 1_024
"""Characters of an id or a name: the longest that anybody makes have some 40 (THREATS 62)."""
CLOSE_BYTES: Final = 64
"""A ControlClose has no reason to be longer."""
OUR_LEVELS: Final = 3
"""Levels that the envelope and a result have around a body."""

Id = Annotated[str, Meta(max_length=MAX_ID)]
T = TypeVar("T")


class _Envelope(Struct, rename="camel", omit_defaults=True):
    """River, TransportMessage, as it stands on the wire."""

    id: Id
    from_: Id = msgspec.field(name="from")
    to: Id = msgspec.field(name="to")
    seq: int | float
    ack: int | float
    stream_id: Id
    control_flags: int | float
    payload: Raw
    service_name: Id | UnsetType = UNSET
    procedure_name: Id | UnsetType = UNSET
    tracing: dict[str, Any] | UnsetType = UNSET


_QUOTED: Final = [f'"{field.encode_name}"'.encode() for field in msgspec.structs.fields(_Envelope)]


class RiverCodec:
    """One of the two ways in which messages travel.

    Args:
        name: ``json`` or ``msgpack``.
        encode: Makes bytes of objects.
        decode: Makes an object of bytes, of the type given.
        check_depth: Refuses bytes that are nested too deeply.
        before: What stands before the payload of a result that is well.
        after: What stands behind it.

    Attributes:
        name: Its name, as URLs have it.
        is_json: Whether it is JSON.
        data_mime: What bodies are.
        null: The body of nothing at all.
        empty: The body of an object without fields.
        before: What stands before the payload of a result that is well.
        after: What stands behind it.
        close: The body of a ControlClose.
        heartbeat: The body of a ControlAck.

    """

    def __init__(
        self,
        name: str,
        encode: Callable[[Any], bytes],
        decode: Callable[..., Any],
        check_depth: Callable[..., None],
        before: bytes,
        after: bytes,
    ) -> None:
        self.name = name
        self.is_json = name == "json"
        self.data_mime = f"application/vnd.river+{name}"
        self.encode_value = encode
        self._decode = decode
        self._check_depth = check_depth
        self.before = before
        self.after = after
        self.null = encode(None)
        self.empty = encode({})
        self.close = encode({"type": "CLOSE"})
        self.heartbeat = encode({"type": "ACK"})

    def encode(self, message: Message) -> bytes:
        """Return `message` as bytes, without a length before it.

        Raises:
            LocalError: A field of it cannot be encoded.

        """
        envelope = _Envelope(
            message.id,
            message.from_,
            message.to,
            message.seq,
            message.ack,
            message.stream_id,
            message.control_flags,
            Raw(message.payload),
            UNSET if message.service_name is None else message.service_name,
            UNSET if message.procedure_name is None else message.procedure_name,
            UNSET if message.tracing is None else message.tracing,
        )
        return self.encoded(envelope)

    def encoded(self, value: object) -> bytes:
        """Return `value` as bytes.

        Raises:
            LocalError: It cannot be encoded.

        """
        try:
            return self.encode_value(value)
        except (msgspec.MsgspecError, UnicodeEncodeError, OverflowError) as error:
            raise LocalError(f"the message cannot be encoded: {error}") from error

    def decode(self, data: bytes, start: int = 0, end: int | None = None, results: bool = False) -> Message:
        """Return the message that ``data[start:end]`` is.

        Args:
            data: Where it lies.
            start: Where it begins.
            end: Where it ends; None: with `data`.
            results: Whether `Message.well` may be set, instead of `payload`.

        Raises:
            FrameError: It is none.

        """
        end = len(data) if end is None else end
        return river_scanning.scan(data, start, end, self.is_json, results) or self.decode_any(data[start:end])

    def decode_any(self, data: bytes) -> Message:
        """Return the message that `data` is, by the general way, which tells what is wrong with what is none.

        Raises:
            FrameError: It is none.

        """
        self._check_depth(data)
        envelope = self.value(data, _Envelope)
        self._check_names(data, envelope)
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
        """Return what `data` is, as a `type`.

        Raises:
            FrameError: It is something else.

        """
        try:
            found: T = self._decode(data, type=type)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise FrameError(f"no River message: {error}") from error
        return found

    def body(self, data: bytes) -> bytes:
        """Return the body that `data`, which a user wrote, travels as.

        Raises:
            LocalError: It is nothing that this codec could have written.

        """
        if river_scanning.is_body(data, self.is_json):
            return data
        try:
            self._check_depth(data, MAX_DEPTH - OUR_LEVELS)
            return self._checked(data)
        except (msgspec.MsgspecError, FrameError, UnicodeDecodeError, RecursionError) as error:
            raise LocalError(f"data is not {self.name}, which this connection speaks: {error}") from error

    def is_close(self, body: bytes) -> bool:
        """Whether a body is a ControlClose: ``{type: "CLOSE"}``."""
        # Most bodies are longer, or shorter, than any way to write it.
        if not len(self.close) <= len(body) <= CLOSE_BYTES:
            return False
        try:
            return self.value(body, dict[str, object]) == {"type": "CLOSE"}
        except FrameError:
            return False

    def _checked(self, data: bytes) -> bytes:
        raise NotImplementedError

    def _check_names(self, data: bytes, message: _Envelope) -> None:
        """Refuse a message that says something twice: who reads it may take either (THREATS 64)."""
        raise NotImplementedError


class _Json(RiverCodec):
    def _checked(self, data: bytes) -> bytes:
        data.decode()
        return msgspec.json.format(data, indent=-1)

    def _check_names(self, data: bytes, message: _Envelope) -> None:
        # Only a name that stands there twice, or one that is written with escapes, can be a double.
        if b"\\u" in data or any(data.count(name) > 1 for name in _QUOTED):
            try:
                found = json.loads(data.decode(errors="replace"), object_pairs_hook=_Pairs)
            except (ValueError, RecursionError) as error:
                raise FrameError(f"no River message: {error}") from error
            names = [name for name, _ in found]
            if len(set(names)) != len(names):
                raise FrameError("the message names a field twice")


class _Msgpack(RiverCodec):
    def _checked(self, data: bytes) -> bytes:
        msgspec.msgpack.decode(data)
        return data

    def _check_names(self, data: bytes, message: _Envelope) -> None:
        optional = (message.service_name, message.procedure_name, message.tracing)
        said = 8 + sum(field is not UNSET for field in optional)
        # Nearly all maps are of at most 15 entries, which the first byte counts.
        count = data[0] & 0x0F
        if data[0] == 0xDE:
            count = int.from_bytes(data[1:3], "big")
        elif data[0] == 0xDF:
            count = int.from_bytes(data[1:5], "big")
        if count != said and len(self.value(data, dict[str, Raw])) != count:
            raise FrameError("the message names a field twice")


class _Pairs(list[tuple[str, object]]):
    """The fields of an object as they stand there, doubles and all."""


def whole(name: str, number: int | float) -> int:
    """Return `number`, which may be written as a float, as an integer from 0 to 2^53-1.

    Raises:
        FrameError: It is none.

    """
    if not 0 <= number <= MAX_NUMBER or int(number) != number:
        raise FrameError(f"{name} is {number}; it is a whole number from 0 to 2^53-1")
    return int(number)


CODECS: Final[dict[str, RiverCodec]] = {
    "json": _Json("json", msgspec.json.encode, msgspec.json.decode, check_json_depth, b'{"ok":true,"payload":', b"}"),
    "msgpack": _Msgpack(
        "msgpack",
        msgspec.msgpack.encode,
        msgspec.msgpack.decode,
        check_msgpack_depth,
        b"\x82\xa2ok\xc3\xa7payload",
        b"",
    ),
}


def codec_of(name: str) -> RiverCodec:
    """Return the codec of that name.

    Raises:
        LocalError: There is none.

    """
    if name not in CODECS:
        raise LocalError(f"unknown codec {name!r}; known are: {', '.join(CODECS)}")
    return CODECS[name]
