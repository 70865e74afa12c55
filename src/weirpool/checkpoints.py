"""Checkpoints in two parts: a public part, which may be stored with the data, and a private part for its owner.

A client keeps its sent messages until the server confirms them. They include requests, with credentials in their
metadata and data. Only the owner may read these, so they must not be in files that people copy.

The private part has messages with their positions. A part that was stored later also fits an earlier public part: the
server has confirmed the messages that were removed from it, and the added ones follow that checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from .errors import LocalError

__all__ = ["Private", "before", "compose", "dissect", "join", "split"]


class Private(msgspec.Struct, array_like=True):
    """Messages that the server may not have received, and that may contain secrets.

    Attributes:
        first: The position of the first one.
        messages: The consecutive messages.

    """

    first: int
    messages: list[bytes]


_parts = msgspec.msgpack.Decoder(tuple[bytes, bytes])
_private = msgspec.msgpack.Decoder(Private)


def join(public: bytes, private: bytes) -> bytes:
    """Return the checkpoint with these parts."""
    return msgspec.msgpack.encode((public, private))


def split(checkpoint: bytes) -> tuple[bytes, bytes]:
    """Return the public and the private part of a checkpoint. The private part is empty if there are no secrets.

    Raises LocalError if `checkpoint` is not a checkpoint.
    """
    try:
        return _parts.decode(checkpoint)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _invalid(checkpoint, error) from error


def compose(public: bytes, first: int, messages: list[bytes]) -> bytes:
    """Return a checkpoint whose private part is `messages`, starting at position `first`."""
    return join(public, msgspec.msgpack.encode(Private(first, messages)) if messages else b"")


def dissect(checkpoint: bytes) -> tuple[bytes, Private]:
    """Return the public part of a checkpoint, and the messages of its private part.

    Raises LocalError if `checkpoint` is not a checkpoint.
    """
    public, private = split(checkpoint)
    try:
        return public, _private.decode(private) if private else Private(0, [])
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _invalid(checkpoint, error) from error


def before(private: Private, end: int, size: Callable[[bytes], int]) -> list[bytes]:
    """Return the messages before position `end`, at which the public part continues.

    Returns none if the server has confirmed everything before `end`. `size` returns by how much a message advances the
    position.
    """
    position = private.first
    found: list[bytes] = []
    for message in private.messages:
        if position >= end:
            break
        found.append(message)
        position += size(message)
    return found if position == end else []


def _invalid(checkpoint: bytes, error: Exception) -> LocalError:
    return LocalError(f"invalid session checkpoint ({len(checkpoint)} bytes): {error}")
