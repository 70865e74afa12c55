"""Events of a new session that wait for its client, and then for room."""

from __future__ import annotations

from collections import deque
from typing import Final

from ..account import FINE, Account
from ..core.write_ahead import without_requests
from ..events import Event, ItemReceived, Requested, Unlinked

__all__ = ["PORTION", "Backlog"]

PORTION: Final = 65_536
"""Bytes of events that are passed on at once. Handlers keep more than the bytes of their requests, namely the decoded
values, so the account must settle before the next handlers start."""
EVENT_BYTES: Final = 256
"""The approximate overhead of an event, in bytes: its objects, and its place in a list."""


class Backlog:
    """Events that a session holds back, and then passes on in portions.

    Args:
        account: Counts them.

    Attributes:
        size: Their bytes.

    """

    __slots__ = ("_account", "_events", "size")

    def __init__(self, account: Account) -> None:
        self._account = account
        self._events: deque[Event] = deque()
        self.size = 0

    def sift(self, events: list[Event], waits: bool, held: int) -> list[Event]:
        """Return the events that may be passed on now, and hold the others.

        Args:
            events: The new events.
            waits: Whether no request may start.
            held: The bytes that the session holds for its streams elsewhere.

        """
        # The end of a link is not delayed: there may be another link afterwards.
        passed: list[Event] = [event for event in events if isinstance(event, Unlinked)]
        rest = [event for event in events if not isinstance(event, Unlinked)]
        if not self._events:
            first = _first_of_stream(rest)
            passed, rest = passed + rest[:first], rest[first:]
        self._events.extend(rest)
        self._count(sum(map(_size, rest)))
        return passed if waits else passed + self._take(held)

    def end(self, events: list[Event]) -> None:
        """Put what is held in front of `events`, without the streams whose requests have not been passed on."""
        events[:] = without_requests([*self._events, *events])
        self._events.clear()
        self._count(-self.size)

    def _take(self, held: int) -> list[Event]:
        """Remove and return the next events; none while handlers hold something and a limit is exceeded.

        If they hold nothing, only new requests can make room.
        """
        account = self._account
        of_handlers = account.held - account.incomplete - account.retained - account.unread - self.size - held
        taken: list[Event] = []
        if account.settle() != FINE and of_handlers > 0:
            return taken
        size = 0
        while self._events and size < PORTION:
            event = self._events.popleft()
            taken.append(event)
            size += _size(event)
        self._count(-size)
        return taken

    def _count(self, size: int) -> None:
        self.size += size
        if size < 0:
            self._account.release(-size)
        else:
            self._account.book(size)


def _first_of_stream(events: list[Event]) -> int:
    """Return the index of the first event of a stream; the number of events if there is none."""
    return next((index for index, event in enumerate(events) if event.stream_id), len(events))


def _size(event: Event) -> int:
    if not isinstance(event, Requested | ItemReceived):
        return EVENT_BYTES
    payload = event.payload
    return EVENT_BYTES + len(payload.data) + len(payload.metadata or b"")
