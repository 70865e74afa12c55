"""Messages out of a stream of bytes: what sessions write, for transports that keep the bounds of messages.

RSocket 1.0, Framing Protocol Usage: TCP, TLS, Unix and HTTP/2 need the length field; WebSocket must not have it.
Sessions speak with it on every transport: a transport of messages takes it off what is sent, and puts it before
what comes in.
"""

from __future__ import annotations

__all__ = ["MessageCutter"]


class MessageCutter:
    """Cuts what a session writes into messages: the frames, without the length before each.

    Args:
        width: Bytes of that length, which is big-endian and excludes itself.

    Attributes:
        width: Bytes of the length.
        pending: Bytes that are held: the beginning of a message.

    """

    __slots__ = ("_need", "_pieces", "pending", "width")

    def __init__(self, width: int) -> None:
        self.width = width
        self._pieces: list[bytes] = []
        self._need = width
        self.pending = 0

    def cut(self, data: bytes) -> list[bytes]:
        """Return the messages that are whole with `data`, which may begin and end anywhere in one."""
        if self.pending:
            # A long message is joined once, however many pieces it comes in.
            self._pieces.append(data)
            self.pending += len(data)
            if self.pending < self._need:
                return []
            data = b"".join(self._pieces)
            self._pieces = []
            self.pending = 0
        messages: list[bytes] = []
        width = self.width
        size = len(data)
        at = 0
        need = width
        while size - at >= width:
            start = at + width
            end = start + int.from_bytes(data[at:start], "big")
            if end > size:
                need = end - at
                break
            messages.append(data[start:end])
            at = end
        if at < size:
            self._pieces.append(data[at:])
            self.pending = size - at
            self._need = need
        return messages
