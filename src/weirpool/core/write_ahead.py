"""The write-ahead log of a session: output is sent, and requests are started, after they have been recorded.

A session that outlives its process has this object instead of an outbox. Writing does not block the event loop. All
changes so far are one record; its output and events are withheld until it is durable. Changes during a write form the
next record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec

from ..errors import SessionStoreError
from ..events import Event, Requested
from ..session import Run, SessionLog
from .outbox import Outbox

__all__ = ["Logged", "WriteAhead", "decode_records", "digest", "without_requests"]

REWRITE_BYTES: Final = 1 << 20
"""A log is rewritten when it has grown to twice its size after the last rewrite, plus this much."""


class Logged(NamedTuple):
    """The state of a session after the records of a log.

    Attributes:
        sent: The number of the first message, or the position of the first byte, that they do not contain.
        received: The number or position that may be acknowledged.
        streams: The open halves of each stream.

    """

    sent: int
    received: int
    streams: Mapping[Any, int]

    def opened_since(self, before: Logged | None) -> dict[Any, int]:
        """Return the streams whose state is new or different from `before`."""
        known = before.streams if before is not None else {}
        return {name: state for name, state in self.streams.items() if known.get(name) != state}

    def ended_since(self, before: Logged | None) -> list[Any]:
        """Return the streams that were open `before` and are not open now."""
        return [name for name in before.streams if name not in self.streams] if before is not None else []


def decode_records(
    decoder: msgspec.msgpack.Decoder[Any], data: Iterable[bytes], version: int, protocol: str
) -> tuple[list[Any], dict[Any, int]]:
    """Return the records of a log, and the streams that are open after them.

    Only the first record has an `opening`; each has the streams `opened` and `ended` since the one before it.

    Raises:
        SessionStoreError: A record is invalid or of another version, or the first one has no `opening`.

    """
    records = []
    streams: dict[Any, int] = {}
    for each in data:
        try:
            record = decoder.decode(each)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise SessionStoreError(
                f"{protocol} session log has an invalid record ({len(each)} bytes): {error}"
            ) from error
        if record.opening is not None and record.opening.version != version:
            found = record.opening.version
            raise SessionStoreError(f"{protocol} session log has version {found}; this release reads version {version}")
        records.append(record)
        streams.update(record.opened)
        for name in record.ended:
            streams.pop(name, None)
    if not records or records[0].opening is None:
        raise SessionStoreError(f"{protocol} session log does not begin with a whole session")
    return records, streams


class WriteAhead(Outbox):
    """An outbox that releases output when everything that it depends on is durable.

    Args:
        observe: Returns the state to be recorded; None if the session has not started, so that nothing is written.
        encode: Returns the record of the changes between two states; from None: the complete session.
        fail: Ends the session because a record cannot be written. Its output must not be sent.
        is_open: Returns whether the session accepts new streams.
        high_bytes: The maximum output that may wait for the disk.

    Attributes:
        log: The log; None if nothing is recorded and everything is released at once.
        begun: Whether the log contains the session.
        waiting: Events that the next record covers.

    """

    __slots__ = (
        "_afterwards", "_encode", "_fail", "_held_events", "_held_output", "_high_bytes", "_is_open", "_logged",
        "_observe", "_ready_events", "_ready_output", "_rewrite_at", "_run", "_storage_full", "_unsynced", "_watcher",
        "_writing", "begun", "log", "waiting",
    )  # fmt: skip

    def __init__(
        self,
        observe: Callable[[], Logged | None],
        encode: Callable[[Logged, Logged | None], bytes],
        fail: Callable[[Exception], None],
        is_open: Callable[[], bool],
        high_bytes: int,
    ) -> None:
        super().__init__()
        self._observe = observe
        self._encode = encode
        self._fail = fail
        self._is_open = is_open
        self._high_bytes = high_bytes
        self._logged: Logged | None = None
        # The state and kind of the record that is being written, if any, and what to do with the log afterwards.
        self._writing: tuple[Logged, bool] | None = None
        self._afterwards: Callable[[], None] | None = None
        self._watcher: Callable[[bool], None] | None = None
        self._run: Run | None = None
        self._rewrite_at = 0
        # An earlier process may have been killed between writing and syncing the last records.
        self._unsynced = False
        self._storage_full = False
        # Output and events of the record that is being written, and those that are durable.
        self._held_output: list[bytes] = []
        self._ready_output: list[bytes] = []
        self._held_events: list[Event] = []
        self._ready_events: list[Event] = []
        self.log: SessionLog | None = None
        self.begun = False
        self.waiting: list[Event] = []

    # The log.

    def begin(self, log: SessionLog, run: Run, logged: Logged | None = None) -> None:
        """Record the session in `log` from now on, and call `run` to write; `logged` is the state in the log."""
        self.log = log
        self._run = run
        if logged is not None:
            self._logged = logged
            self.begun = self._unsynced = True
            self._rewrite_at = 2 * log.size + REWRITE_BYTES

    def watch(self, watcher: Callable[[bool], None]) -> None:
        """Set the callback for changes. See :meth:`weirpool.session.Durable.watch`."""
        self._watcher = watcher

    @property
    def kept(self) -> bool:
        """Whether the next process can resume the session. See :class:`weirpool.session.Durable`."""
        return self.log is not None and self.begun and self._is_open()

    @property
    def settled(self) -> bool:
        """Whether all output and events are durable."""
        return self.log is None or not (self._writing or self.waiting or self.size)

    @property
    def withheld(self) -> set[int]:
        """The streams with events that wait for the disk."""
        return {event.stream_id for event in self._held_events + self.waiting}

    def detach(self) -> None:
        """Close the log without removing it, so that the next process can continue."""
        log, self.log = self.log, None
        self.forget_output()
        self.waiting, self._held_events = [], []
        if log is not None:
            self._when_written(log.close)

    def end(self) -> tuple[list[Event], Callable[[], None]]:
        """Release all output: a session that has ended is not resumed, so its output need not be durable.

        Returns:
            The events that are not durable, for :meth:`ready`, and a function that removes the log.

        """
        log, self.log = self.log, None
        self._ready_output += self._held_output
        events = self._held_events + self.waiting
        self._held_output, self._held_events, self.waiting = [], [], []
        return events, (lambda: None) if log is None else partial(self._when_written, log.remove)

    def _when_written(self, do: Callable[[], None]) -> None:
        """Call `do` when no write is in progress."""
        if self._writing:
            self._afterwards = do
        else:
            do()

    # Output and events.

    def take(self) -> list[bytes]:
        """Remove and return the output that may be sent. See :meth:`weirpool.core.outbox.Outbox.take`."""
        if self.log is not None:
            self._secure()
            if self._writing and not self._storage_full and self.size > self._high_bytes and self._watcher is not None:
                self._storage_full = True
                self._watcher(True)
        ready = self._ready_output
        if ready:
            self._ready_output = []
        # Without a log the session cannot be resumed, so output need not be durable.
        return ready if self.log is not None else ready + Outbox.take(self)

    def clear(self) -> None:
        """Discard all output, also what is being recorded: the next link sends what is not acknowledged."""
        Outbox.clear(self)
        self.forget_output()

    def forget_output(self) -> None:
        """Discard the output that is withheld until it is durable."""
        self._held_output, self._ready_output = [], []

    def sift(self, events: list[Event]) -> list[Event]:
        """Return the events that have become durable, and those of `events` that need not wait.

        Requests wait until they are durable, so that none is started twice. Later events wait too, to keep the order.
        """
        if self.log is None:
            return self._take_ready(events)
        first = 0 if self.waiting or self._held_events else _first_request(events)
        ready = self._take_ready(events[:first])
        if first < len(events):
            self.waiting += events[first:]
            self._secure()
            ready += self._take_ready([])
        return ready

    def ready(self, events: list[Event]) -> None:
        """Add `events` to those that are durable."""
        self._ready_events += events

    def _take_ready(self, events: list[Event]) -> list[Event]:
        """Remove and return the durable events, followed by `events`."""
        ready = self._ready_events
        if not ready:
            return events
        self._ready_events = []
        return ready + events

    # Records.

    def _secure(self) -> None:
        """Start to record all changes, unless a write is in progress, and withhold their output and events."""
        if self._writing or not (self.size or self.waiting):
            return
        work = self._record()
        self._held_output += Outbox.take(self)
        self._held_events, self.waiting = self.waiting, []
        if work is None or self._run is None:
            self._release()
        else:
            self._run(work, self._written)

    def _record(self) -> Callable[[], None] | None:
        """Return a function that writes the changes; None if there are none."""
        log, now = self.log, self._observe()
        if log is None or now is None:
            return None
        whole = not self.begun or log.size > self._rewrite_at
        if not whole and not self._unsynced and now == self._logged:
            return None
        record = self._encode(now, None if whole else self._logged)
        self._writing = now, whole
        return partial(log.rewrite if whole else log.append, record)

    def _written(self, error: Exception | None) -> None:
        """Release the output and events of a record that is durable; end the session if writing failed."""
        writing, self._writing = self._writing, None
        log = self.log
        if log is None or writing is None:
            if self._afterwards is not None:
                self._afterwards()
                self._afterwards = None
        elif error is not None:
            self.clear()
            self._fail(error)
        else:
            self._logged, whole = writing
            self._unsynced = False
            if whole:
                self.begun = True
                self._rewrite_at = 2 * log.size + REWRITE_BYTES
            self._release()
        self._storage_full = False
        if self._watcher is not None:
            self._watcher(False)

    def _release(self) -> None:
        """Release the withheld output and events, which are durable."""
        self._ready_output += self._held_output
        self._ready_events += self._held_events
        self._held_output, self._held_events = [], []


def _first_request(events: list[Event]) -> int:
    """Return the index of the first request in `events`; their number if there is none."""
    return next((index for index, event in enumerate(events) if type(event) is Requested), len(events))


def without_requests(events: list[Event]) -> list[Event]:
    """Return `events` without those of streams whose request is among them."""
    unbegun = {event.stream_id for event in events if type(event) is Requested}
    return [event for event in events if event.stream_id not in unbegun]


def digest(identity: bytes) -> bytes:
    """Return the digest of an identity that is stored instead of the identity."""
    return sha256(identity).digest()
