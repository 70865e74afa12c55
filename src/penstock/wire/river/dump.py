"""River messages for people: one JSON object a message, or one line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ...errors import FrameError
from ...texts import shortened, shown_line
from ..framing import PREFIX_BYTES
from .codec import codec_of
from .grammar import FLAGS
from .message import Message
from .values import decode_value, shown_value

__all__ = ["line", "read_messages"]

HANDSHAKES: Final = ("HANDSHAKE_REQ", "HANDSHAKE_RESP", "REHANDSHAKE_REQ", "REHANDSHAKE_RESP")
CONTROLS: Final = ("ACK", "CLOSE", *HANDSHAKES)
SECRETS: Final = ("sessionId", "metadata", "metdata")
"""Whoever knows the id of a session may go on with it, and its client's metadata may hold credentials."""


def read_messages(data: bytes, codec: str, prefixed: bool = False) -> Iterator[dict[str, Any]]:
    """Yield the messages in `data`, each as an object that JSON can show.

    Args:
        data: One message; with `prefixed` any number of them.
        codec: What they are written in.
        prefixed: A length stands before each.

    Raises:
        FrameError: What stands there is no message, or the last one is not whole.

    """
    at = 0
    while at < len(data):
        if not prefixed:
            yield _shown(data, codec)
            return
        start = at + PREFIX_BYTES
        end = start + int.from_bytes(data[at:start], "big")
        if end > len(data):
            raise FrameError(f"the message should end at byte {end} of {len(data)}", at)
        yield {"length": end - start, **_shown(data[start:end], codec)}
        at = end


def _shown(data: bytes, codec: str) -> dict[str, Any]:
    message = _whole(data, codec)
    flags = message.control_flags
    shown: dict[str, Any] = {
        "id": message.id,
        "from": message.from_,
        "to": message.to,
        "seq": message.seq,
        "ack": message.ack,
        "streamId": message.stream_id,
        "controlFlags": [name for bit, name in FLAGS.items() if flags & bit],
    }
    if message.service_name is not None:
        shown["serviceName"] = message.service_name
    if message.procedure_name is not None:
        shown["procedureName"] = message.procedure_name
    # Bytes and big integers as the JSON codec has them.
    body = shown_value(decode_value(message.payload, codec))
    shown["payload"] = codec_of("json").value(body, object)
    return shown


def line(data: bytes, secrets: bool = False) -> str:
    """Return a message as one line; nothing in it can move a terminal's cursor.

    It begins with the type of a control message, and else with DATA.

    Args:
        data: The message, without a length before it, in either codec.
        secrets: Show the ids of sessions, and what clients say of themselves, too.

    Raises:
        FrameError: It is no message.

    """
    # An object of JSON begins with a brace, a map of MessagePack never.
    codec = "json" if data[:1] == b"{" else "msgpack"
    message = _whole(data, codec)
    flags = int(message.control_flags)
    value = decode_value(bytes(message.payload), codec)
    control = value.get("type") if isinstance(value, dict) else None
    known = control in CONTROLS
    words = [str(control) if known else "DATA", f"stream={shown_line(message.stream_id)}"]
    words += [name.lower() for bit, name in FLAGS.items() if flags & bit]
    if control in HANDSHAKES[:2]:
        # These have no numbers.
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
    """Return the message that `data` is. Raises FrameError if it is none, or its payload cannot be read."""
    known = codec_of(codec)
    message = known.decode_any(data, True)
    if message.fault is not None:
        raise FrameError(message.fault.message)
    return message


def _fields(value: dict[str, Any], secrets: bool) -> Iterator[tuple[str, str]]:
    """Yield the fields of a handshake as they are shown, those of its inner objects, too."""
    for name, inner in value.items():
        if name in SECRETS and not secrets:
            yield shown_line(name), "hidden"
        elif isinstance(inner, dict) and name not in SECRETS:
            yield from _fields(inner, secrets)
        elif name != "type":
            yield shown_line(name), shortened(inner) if isinstance(inner, str) else _text(inner)


def _text(value: Any) -> str:
    return shortened(shown_value(value).decode())
