"""Exactly once: the numbers of messages, and what was sent and is not acknowledged yet.

River, Transparent reconnections. A message is kept as the bytes that were sent, because it is sent again as it was.
"""

from __future__ import annotations

from collections import deque
from itertools import islice

from ..errors import ProtocolError

__all__ = ["Sequence"]


class Sequence:
    """The bookkeeping of one session.

    Args:
        max_messages: Unacknowledged messages at most.
        max_bytes: Their bytes at most.

    Attributes:
        seq: The number of the next message that is sent.
        ack: The number of the next message that is expected.
        covered: What the peer is told instead, once somebody keeps checkpoints: it covers no more. -1: nobody does.
        reserved: The number at which the session must not begin to speak by itself, once somebody keeps checkpoints.
        private: The number behind the last message that may hold secrets; only heartbeats hold none for sure.
        octets: Bytes that are not acknowledged, with the lengths before them.
        room: How many items may be sent now. Half of what is kept at most is left to what cannot wait: answers.

    """

    __slots__ = (
        "_kept", "_max_bytes", "_max_messages", "_unacked", "ack", "covered", "octets", "private", "reserved",
        "room", "seq",
    )  # fmt: skip

    def __init__(self, max_messages: int, max_bytes: int) -> None:
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._unacked: deque[bytes] = deque()
        self._kept = 0
        self.seq = 0
        self.ack = 0
        self.covered = -1
        self.reserved = 0
        self.private = 0
        self.octets = 0
        self.room = 0
        self._measure()

    def reported(self) -> int:
        """Return what the peer is told that has come: it forgets what lies before."""
        return self.ack if self.covered < 0 else self.covered

    def has_reserve(self) -> bool:
        """Return whether an acknowledgement may be sent that nobody has asked for.

        Once somebody keeps checkpoints, each of them reserves the numbers of a few.
        """
        return self.covered < 0 or self.seq < self.reserved

    @property
    def first(self) -> int:
        """The oldest message that is not acknowledged, or the next one: `nextSentSeq` of a handshake."""
        return self.seq - self._kept

    @property
    def largest(self) -> int:
        """The size of the largest message that is not acknowledged; 0: there is none."""
        return max(map(len, self._unacked), default=0)

    @property
    def unacked(self) -> list[bytes]:
        """What is not acknowledged, in order."""
        return list(self._unacked)

    def since(self, number: int) -> list[bytes]:
        """Return what is not acknowledged and has `number` or a later one, in order."""
        count = min(self.seq - number, self._kept)
        found = list(islice(reversed(self._unacked), max(0, count)))
        found.reverse()
        return found

    def over(self) -> bool:
        """Return whether more is kept than may be (THREATS 59)."""
        return self._kept > self._max_messages or self.octets > self._max_bytes

    def sent(self, message: bytes) -> None:
        """Keep a message that has the number `seq`, encoded (THREATS 60: what cannot be encoded has none)."""
        self._unacked.append(message)
        self._kept += 1
        self.octets += len(message)
        self.seq += 1
        self._measure()

    def replace(self, seq: int, message: bytes) -> None:
        """Keep `message` in the place of the one with that number, which the peer has not taken."""
        index = seq - self.first
        self.octets += len(message) - len(self._unacked[index])
        self._unacked[index] = message
        self._measure()

    def acknowledged(self, ack: int) -> None:
        """Forget the messages whose number is less than `ack`.

        Raises:
            ProtocolError: Some of them were never sent.

        """
        if ack > self.seq:
            raise ProtocolError(f"the peer acknowledges {ack} messages, and {self.seq} were sent")
        count = ack - (self.seq - self._kept)
        if count <= 0:
            return
        self._kept -= count
        for _ in range(count):
            self.octets -= len(self._unacked.popleft())
        self._measure()

    def _measure(self) -> None:
        room = self._max_messages // 2 - self._kept
        self.room = room if room > 0 and 2 * self.octets < self._max_bytes else 0
