"""The fast path for WebSocket frames, which only the compiled build has; see `websocket_runs.pyx`.

Nearly every frame is a whole binary message. Each function processes consecutive frames of this kind in one pass. All
other frames are left to :mod:`.websocket_frames`; in the plain build, these functions process none.
"""

from __future__ import annotations

__all__ = ["read_run", "write_run"]


def read_run(data: bytes, at: int, masked: bool, max_bytes: int, width: int) -> tuple[bytes, int]:
    """Decode consecutive whole binary messages.

    Args:
        data: The received data.
        at: The start of a frame.
        masked: Frames must be masked.
        max_bytes: The maximum size of a message.
        width: The width of the length prefix to add to each: big-endian, excluding itself. 0 adds none.

    Returns:
        The messages, joined; and the start of the first frame that was not decoded.

    """
    if at < 0:
        raise IndexError(f"no frame begins at byte {at}")
    return b"", at


def write_run(data: bytes, width: int, masking: bool) -> tuple[bytes, int]:
    """Return the frames of the whole messages in `data`.

    Args:
        data: Messages, each with a length prefix.
        width: The width of this prefix, which is big-endian and excludes itself.
        masking: Mask each frame with an unpredictable key, as clients must (RFC 6455, 5.3).

    Returns:
        The frames, joined; and the start of the first message that was not encoded: it is incomplete, or so long that
        it is faster to write separately.

    """
    if not 1 <= width <= 4:
        raise ValueError(f"a length has 1 to 4 bytes, not {width}")
    return b"", 0
