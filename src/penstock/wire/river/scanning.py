"""The fast way into River's messages, which only the compiled build has; see `scanning.pyx`."""

from __future__ import annotations

from .message import Message

__all__ = ["is_body", "scan"]


def scan(
    buffer: bytes, start: int, end: int, json: bool, results: bool, from_: str = "", to: str = ""
) -> Message | None:
    """Return the message that ``buffer[start:end]`` is, if it is one that can be read without any doubt.

    Args:
        buffer: Where it lies.
        start: Where it begins.
        end: Where it ends.
        json: It is JSON, else MessagePack.
        results: A body is looked into: the one of a result that is well becomes `Message.well`.
        from_: Whom it is from, probably: no other string is made of that.
        to: Whom it is for, probably.

    Returns:
        None leaves it to :meth:`penstock.wire.river.codec.RiverCodec.decode_any`, which reads all that is allowed, and
        says what is wrong with all that is not. The plain build has no faster way than that one.

    Raises:
        IndexError: The buffer is shorter.

    """
    if start < 0 or end > len(buffer):
        raise IndexError(f"bytes {start} to {end} of {len(buffer)}")
    return None


def is_body(data: bytes, json: bool) -> bool:
    """Whether `data` is a body that can be sent as it is, without any doubt.

    Args:
        data: What a user wrote.
        json: It is JSON, else MessagePack.

    Returns:
        False leaves it to :meth:`penstock.wire.river.codec.RiverCodec.body`.

    """
    return False
