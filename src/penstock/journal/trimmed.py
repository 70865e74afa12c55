"""The file that records how far a log was trimmed: rows missing below that position are not damage."""

from __future__ import annotations

import re

import xxhash

from ..errors import JournalCorrupt

__all__ = ["MAX_TRIMMED_BYTES", "decode", "encode"]

MAX_TRIMMED_BYTES = 64
"""The size of the file: a position has at most 19 digits, its checksum 16."""
_LINE = re.compile(rb"(\d{1,19}) ([0-9a-f]{16})\n")


def encode(position: int, uuid: str) -> bytes:
    """Return the content of the file: the position below which the log's rows were trimmed, and a checksum."""
    return b"%d %s\n" % (position, _checksum(b"%d" % position, uuid))


def decode(data: bytes, uuid: str, name: str) -> int:
    """Return the position in the file `name` of the log with this UUID.

    Raises:
        JournalCorrupt: It differs from what was written, or belongs to another log.

    """
    match = _LINE.fullmatch(data)
    if match is None or _checksum(match[1], uuid) != match[2]:
        raise JournalCorrupt(
            f"{name}: does not say how far this log was trimmed; restore it from a copy, or see what "
            "`penstock journal repair` can do"
        )
    return int(match[1])


def _checksum(position: bytes, uuid: str) -> bytes:
    return xxhash.xxh3_64_hexdigest(uuid.encode() + b" " + position).encode()
