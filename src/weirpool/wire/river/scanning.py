"""The fast path of the River decoder, which only the compiled build has; see `scanning.pyx`."""

from __future__ import annotations

from .message import Message

__all__ = ["is_body", "scan"]


def scan(
    buffer: bytes, start: int, end: int, json: bool, results: bool, from_: str = "", to: str = ""
) -> Message | None:
    """Decode the message in ``buffer[start:end]`` if it is valid and has a usual form.

    Args:
        buffer: The bytes that contain the message.
        start: The index of the message.
        end: The index after the message.
        json: Whether the message is JSON, not MessagePack.
        results: Whether to set `Message.ok_payload` if the body is `{ok: true, payload}`.
        from_: The expected sender, which is reused instead of making an equal string.
        to: The expected receiver, likewise.

    Returns:
        None if the message is invalid or unusual; then :meth:`weirpool.wire.river.codec.RiverCodec.decode_any` must
        decode it or report the error. Always None in the plain build, where that method is the fastest.

    Raises:
        IndexError: The buffer is too short.

    """
    if start < 0 or end > len(buffer):
        raise IndexError(f"bytes {start} to {end} of {len(buffer)}")
    return None


def is_body(data: bytes, json: bool) -> bool:
    """Return True if `data` is certainly a body that can be sent unchanged.

    Args:
        data: Data from a user.
        json: Whether it is JSON, not MessagePack.

    Returns:
        False if :meth:`weirpool.wire.river.codec.RiverCodec.body` must check it.

    """
    return False
