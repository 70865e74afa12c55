"""Checkpoints in two parts: a public one, which may lie with the data, and a private one for its owner alone.

A client keeps what it has sent until the server confirms it. Requests are among that, with the credentials in their
metadata and data. They belong where only the owner reads, and must not enter files that people copy.

The private part holds messages by their positions. So a part that was stored later serves an earlier public part, too:
the server has confirmed what is gone from it, and what was added to it lies behind that checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from .errors import LocalError

__all__ = ["Private", "before", "compose", "dissect", "join", "split"]


class Private(msgspec.Struct, array_like=True):
    """Messages that the server may not have, and that may hold secrets.

    Attributes:
        first: The position of the first one.
        messages: Without gaps between them.

    """

    first: int
    messages: list[bytes]


_parts = msgspec.msgpack.Decoder(tuple[bytes, bytes])
_private = msgspec.msgpack.Decoder(Private)


def join(public: bytes, private: bytes) -> bytes:
    """Return the checkpoint that consists of these parts."""
    return msgspec.msgpack.encode((public, private))


def split(checkpoint: bytes) -> tuple[bytes, bytes]:
    """Return the public and the private part of a checkpoint. The private part is empty if there are no secrets.

    Raises:
        LocalError: `checkpoint` is not one.

    """
    try:
        return _parts.decode(checkpoint)
    except msgspec.DecodeError as error:
        raise _invalid(checkpoint, error) from error


def compose(public: bytes, first: int, messages: list[bytes]) -> bytes:
    """Return a checkpoint whose private part is `messages`, from position `first` on."""
    return join(public, msgspec.msgpack.encode(Private(first, messages)) if messages else b"")


def dissect(checkpoint: bytes) -> tuple[bytes, Private]:
    """Return the public part of a checkpoint, and the messages of its private part.

    Raises:
        LocalError: `checkpoint` is not one.

    """
    public, private = split(checkpoint)
    try:
        return public, _private.decode(private) if private else Private(0, [])
    except msgspec.DecodeError as error:
        raise _invalid(checkpoint, error) from error


def before(private: Private, end: int, size: Callable[[bytes], int]) -> list[bytes]:
    """Return the messages that lead up to position `end`.

    There are none where the server has confirmed what lies before `end`, because then nothing leads up to it.

    Args:
        private: Where they are looked for.
        end: Where the public part goes on.
        size: By how much a message moves the position.

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
    return LocalError(f"these {len(checkpoint)} bytes are no checkpoint of a session: {error}")
