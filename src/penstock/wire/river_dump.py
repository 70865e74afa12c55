"""River messages for people: one JSON object a message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import FrameError
from .river import ACK, CANCEL, CLOSE, OPEN, PREFIX_BYTES, codec_of
from .river_values import decode_value, encode_value

__all__ = ["read_messages"]

FLAGS = {ACK: "ACK", OPEN: "OPEN", CANCEL: "CANCEL", CLOSE: "CLOSE"}


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
    message = codec_of(codec).decode(data)
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
    body = encode_value(decode_value(message.payload, codec), "json")
    shown["payload"] = codec_of("json").value(body, object)
    return shown
