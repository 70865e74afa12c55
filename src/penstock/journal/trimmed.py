"""The file that tells how far a log was trimmed: what is missing below that, nobody has taken away."""

from __future__ import annotations

import re

import xxhash

from ..errors import JournalCorrupt

__all__ = ["MAX_TRIMMED_BYTES", "decode", "encode"]

MAX_TRIMMED_BYTES = 64
"""Of the file: a position takes 19 digits at most, its checksum 16."""
_LINE = re.compile(rb"(\d{1,19}) ([0-9a-f]{16})\n")


def encode(position: int, uuid: str) -> bytes:
    """Return the file of a log: the position below which its rows were trimmed, and a checksum of both."""
    return b"%d %s\n" % (position, _checksum(b"%d" % position, uuid))


def decode(data: bytes, uuid: str, name: str) -> int:
    """Return the position in the file `name` of the log with this UUID.

    Raises:
        JournalCorrupt: It is not what was written, or another log's.

    """
    match = _LINE.fullmatch(data)
    if match is None or _checksum(match[1], uuid) != match[2]:
        raise JournalCorrupt(
            f"{name}: does not tell how far this log was trimmed; restore it from a copy, or see what "
            "`penstock journal repair` can do"
        )
    return int(match[1])


def _checksum(position: bytes, uuid: str) -> bytes:
    return xxhash.xxh3_64_hexdigest(uuid.encode() + b" " + position).encode()
