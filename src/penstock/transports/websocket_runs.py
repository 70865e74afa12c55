"""The fast way through WebSocket frames, which only the compiled build has; see `websocket_runs.pyx`.

Nearly every frame is a whole binary message. Each function takes as many of these as follow each other, in one pass,
and leaves the rest to :mod:`.websocket_frames`, which knows all frames. So does the plain build with all of them.
"""

from __future__ import annotations

__all__ = ["read_run", "write_run"]


def read_run(data: bytes, at: int, masked: bool, max_bytes: int, width: int) -> tuple[bytes, int]:
    """Take the binary messages that lie whole in `data`.

    Args:
        data: What the network brought.
        at: Where a frame begins.
        masked: Its sender must have masked it.
        max_bytes: The longest message that is taken.
        width: Bytes of the length that is put before each: big-endian, and excluding itself. 0: none is.

    Returns:
        The messages, joined; and where the first frame begins that was not taken.

    """
    if at < 0:
        raise IndexError(f"no frame begins at byte {at}")
    return b"", at


def write_run(data: bytes, width: int, masking: bool) -> tuple[bytes, int]:
    """Return the messages that lie whole in `data` as frames.

    Args:
        data: Messages, each with its length before it.
        width: Bytes of that length, which is big-endian and excludes itself.
        masking: As a client must: with a key for each frame that nobody can foresee (RFC 6455, 5.3).

    Returns:
        The frames, joined; and where the first message begins that was not taken: one that is not whole, or so long
        that it is better handed on by itself.

    """
    if not 1 <= width <= 4:
        raise ValueError(f"a length has 1 to 4 bytes, not {width}")
    return b"", 0
