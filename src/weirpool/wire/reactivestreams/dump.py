"""Human-readable messages of reactive-streams-io: JSON-compatible objects and back, and lines of text.

An object has `type`, then the message's fields with the names of the specification. Strings are text, bytes are hex.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from ...errors import FrameError, LocalError, SessionError
from ...texts import quoted
from .codec import EXTENDED, LAYOUTS, NAMES, Field, Items, Layout, Message, Type, encode
from .decoder import Decoder

__all__ = ["Encoder", "MessageReader", "ReactiveStreamsDump", "line", "read_messages", "to_object"]

_TYPES: Final = {name: type for type, name in NAMES.items()}
_ATTRIBUTES: Final = {Field.SUBSCRIBER: "subscriber", Field.NUMBER: "number"}


def _layout(type: int) -> Layout:
    return LAYOUTS.get(type) or EXTENDED[type]


def _decoder() -> Decoder:
    """Return a decoder of single messages, including those of the supported extensions."""
    decoder = Decoder(runs=False)
    decoder.extensions.update(EXTENDED)
    return decoder


def read_messages(data: bytes) -> Iterator[Message]:
    """Yield every message in `data`, which one side sent, including those of the supported extensions.

    Raises:
        FrameError: A message is malformed. The error's `offset` counts from the beginning of `data`.
        LimitExceeded: A message is larger than the default limits.

    """
    decoder = _decoder()
    decoder.feed(data)
    while (message := decoder.next()) is not None:
        # The decoder returns no Items without `runs`.
        assert not isinstance(message, Items)
        yield message
    if decoder.pending:
        at = decoder.position
        raise FrameError(f"the last message is incomplete: it has only {decoder.pending} bytes", at)
    if not data:
        raise FrameError("the input is empty", 0)


def to_object(message: Message) -> dict[str, object]:
    """Return `message` as a JSON-compatible object."""
    result: dict[str, object] = {"type": NAMES[message.type]}
    for name, kind, value in _fields(message):
        if isinstance(value, bytes):
            result[name] = value.decode() if kind == Field.TEXT else value.hex()
        else:
            result[name] = value
    return result


def line(message: Message) -> str:
    """Return `message` as one line of text without control characters."""
    shown = (f"{name}={quoted(value) if isinstance(value, bytes) else value}" for name, _, value in _fields(message))
    return " ".join((NAMES[message.type], *shown))


def _fields(message: Message) -> Iterator[tuple[str, Field, object]]:
    """Yield the name, the kind and the value of each field."""
    for name, kind in _layout(message.type):
        value = list(message.ids) if kind == Field.IDS else getattr(message, _ATTRIBUTES.get(kind, "data"))
        yield name, kind, value


class Encoder:
    """Encodes the messages of one side in order, because `subscribed` determines the encoding of later elements."""

    def __init__(self) -> None:
        self._element_sizes: dict[int, int] = {}

    def encode(self, value: object) -> bytes:
        """Return the message for an object in the format of `to_object`.

        Raises:
            LocalError: A field is missing, unknown, of the wrong type or out of range.

        """
        if not isinstance(value, Mapping):
            raise LocalError("not a JSON object")
        type = _TYPES.get(str(value.get("type")))
        if type is None:
            raise LocalError(f"type is {value.get('type')!r}; it must be one of {', '.join(_TYPES)}")
        message = Message(type)
        layout = _layout(type)
        if unknown := sorted(str(key) for key in value.keys() - {"type", *(name for name, _ in layout)}):
            raise LocalError(f"{NAMES[type]} has no {', '.join(unknown)}")
        for name, kind in layout:
            _set(message, kind, value.get(name), f"{name} of {NAMES[type]}")
        data = encode(message, self._element_sizes.get(message.subscriber, 0))
        if type == Type.SUBSCRIBED:
            self._element_sizes[message.subscriber] = message.number
        return data


def _set(message: Message, kind: Field, value: object, what: str) -> None:
    """Set one field of `message` to the value from an object."""
    if kind in _ATTRIBUTES:
        setattr(message, _ATTRIBUTES[kind], _integer(value, what))
    elif kind == Field.IDS:
        if not isinstance(value, list):
            raise LocalError(f"{what} is {value!r}; it must be an array of integers")
        message.ids = tuple(_integer(each, what) for each in value)
    elif not isinstance(value, str):
        raise LocalError(f"{what} is {value!r}; it must be a string")
    else:
        try:
            message.data = value.encode() if kind == Field.TEXT else bytes.fromhex(value)
        except ValueError:
            how = "text that can be encoded in UTF-8" if kind == Field.TEXT else "hex digits, two for each byte"
            raise LocalError(f"{what} is {value!r}; it must be {how}") from None


def _integer(value: object, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise LocalError(f"{what} is {value!r}; it must be an integer")
    return value


class ReactiveStreamsDump:
    """See :class:`weirpool.protocols.Dump`.

    Args:
        version: The version of the protocol; there is one.

    """

    framings: Final = {"none": 0}
    codecs: Final[tuple[str, ...]] = ()
    unit: Final = "message"
    self_contained: Final = False

    def __init__(self, version: str) -> None:
        self._version = version

    def frames(self, data: bytes, prefix: int, codec: str) -> Iterator[dict[str, object]]:
        """Yield the messages in `data` as objects. See :meth:`weirpool.protocols.Dump.frames`."""
        return (to_object(message) for message in read_messages(data))

    def encoder(self, prefix: int, codec: str) -> Callable[[Mapping[str, object]], bytes]:
        """Return a function that encodes objects. See :meth:`weirpool.protocols.Dump.encoder`."""
        return Encoder().encode

    def detected(self, head: bytes, settings: object) -> ReactiveStreamsDump:
        """Return this dump: there is one version."""
        return self

    def reader(self, mime: str, messages: bool, secrets: bool) -> MessageReader:
        """Return a reader of one direction of a connection. See :meth:`weirpool.protocols.Dump.reader`."""
        return MessageReader()


class MessageReader:
    """Formats one direction of a connection, one line for each message."""

    def __init__(self) -> None:
        self._decoder: Decoder | None = _decoder()

    def lines(self, data: bytes) -> list[str]:
        """Return a line for each message that `data` completes."""
        found: list[str] = []
        decoder = self._decoder
        if decoder is None:
            return found
        decoder.feed(data)
        try:
            while (message := decoder.next()) is not None:
                # The decoder returns no Items without `runs`.
                if isinstance(message, Message):
                    found.append(line(message))
        except SessionError as error:
            # It is not known where the next message begins.
            self._decoder = None
            found.append(f"invalid message, and nothing more can be shown: {error}")
        return found
