"""The reasons not to read from a link, as bits of `Flow.holds`. With most of them, nothing is decoded, either.

Plain integers, because compiled code compares them for each read.
"""

from __future__ import annotations

from typing import Final

__all__ = ["ADMISSION", "BACKLOG", "DECODING", "FULL", "GATHER", "HOOK", "SLOTS", "TURN", "UNREAD"]

BACKLOG: Final = 1
"""The peer does not read."""
SLOTS: Final = 2
"""Handlers whose stream is over take all slots, and a request waits."""
ADMISSION: Final = 4
"""The acceptor has not admitted the connection."""
HOOK: Final = 8
"""The connection hook has not been entered."""
FULL: Final = 16
"""The session holds too much that was not requested, or that waits for the disk."""
UNREAD: Final = 32
"""The account of the connection, of its identity or of the process is full."""
GATHER: Final = 64
"""A consumer of record batches takes what has arrived."""
TURN: Final = 128
"""There is more to decode, or requests wait to be begun, in the turn of the link."""
DECODING: Final = TURN | UNREAD
"""Reasons that do not keep this side from decoding what was read: that makes a full account no fuller."""
