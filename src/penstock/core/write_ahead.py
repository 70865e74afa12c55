"""What a session must write down before its output leaves and its requests begin.

A session that outlives its process has this in the place of its outbox. Nobody waits while the disk is written. What
there is to say by then is one record, whose output and events are held until it is durable; what comes up meanwhile is
the next record.
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
"""A log is rewritten when it has grown to twice what it held then, and this much."""


class Logged(NamedTuple):
    """What the records of a log add up to.

    Attributes:
        sent: The number of the first message, or the position of the first byte, that they do not hold.
        received: The number or position that may be acknowledged.
        streams: What is open of each stream.

    """

    sent: int
    received: int
    streams: Mapping[Any, int]

    def opened_since(self, before: Logged | None) -> dict[Any, int]:
        """Return the streams that are open now, and were not so `before`."""
        known = before.streams if before is not None else {}
        return {name: state for name, state in self.streams.items() if known.get(name) != state}

    def ended_since(self, before: Logged | None) -> list[Any]:
        """Return the streams that were open `before`, and are not now."""
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
        except msgspec.DecodeError as error:
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
    """An outbox whose output leaves when everything that it says is durable; a :class:`penstock.session.Durable`.

    Args:
        observe: Returns what the log should hold now; None: the session has not begun, and nothing is written.
        encode: Returns the record that leads from one state of the log to the next; from None: the whole session.
        fail: Ends the session because a record cannot be written. None of its output may leave.
        is_open: Returns whether the session takes new streams.
        high_bytes: More output than this must not wait for the disk.

    Attributes:
        log: Where records go; None: nothing is kept, and everything is taken at once.
        begun: Whether the log holds the session.
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
        # What the record holds that is being written, if any, and what becomes of the log afterwards.
        self._writing: tuple[Logged, bool] | None = None
        self._afterwards: Callable[[], None] | None = None
        self._watcher: Callable[[bool], None] | None = None
        self._run: Run | None = None
        self._rewrite_at = 0
        # The last records may have been written, and not synced, by a process that was killed in between.
        self._unsynced = False
        self._storage_full = False
        # Output and events that the record covers which is being written, and those that are durable.
        self._held_output: list[bytes] = []
        self._ready_output: list[bytes] = []
        self._held_events: list[Event] = []
        self._ready_events: list[Event] = []
        self.log: SessionLog | None = None
        self.begun = False
        self.waiting: list[Event] = []

    # The log.

    def begin(self, log: SessionLog, run: Run, logged: Logged | None = None) -> None:
        """Keep the session in `log` from now on, which is written by way of `run`; `logged` is there already."""
        self.log = log
        self._run = run
        if logged is not None:
            self._logged = logged
            self.begun = self._unsynced = True
            self._rewrite_at = 2 * log.size + REWRITE_BYTES

    def watch(self, watcher: Callable[[bool], None]) -> None:
        """Tell `watcher` what is durable. See :meth:`penstock.session.Durable.watch`."""
        self._watcher = watcher

    @property
    def kept(self) -> bool:
        """Whether the next process can resume the session. See :class:`penstock.session.Durable`."""
        return self.log is not None and self.begun and self._is_open()

    @property
    def settled(self) -> bool:
        """Whether nothing waits for the disk."""
        return self.log is None or not (self._writing or self.waiting or self.size)

    @property
    def withheld(self) -> set[int]:
        """The streams of which events wait for the disk."""
        return {event.stream_id for event in self._held_events + self.waiting}

    def detach(self) -> None:
        """Leave the log to the next process."""
        log, self.log = self.log, None
        self.forget_output()
        self.waiting, self._held_events = [], []
        if log is not None:
            self._when_written(log.close)

    def end(self) -> tuple[list[Event], Callable[[], None]]:
        """Let go of everything: nobody resumes the session, so its output need not be durable any more.

        Returns:
            The events that are not durable, for :meth:`ready`, and what removes the log.

        """
        log, self.log = self.log, None
        self._ready_output += self._held_output
        events = self._held_events + self.waiting
        self._held_output, self._held_events, self.waiting = [], [], []
        return events, (lambda: None) if log is None else partial(self._when_written, log.remove)

    def _when_written(self, do: Callable[[], None]) -> None:
        """Let go of the log, as soon as nothing is being written to it."""
        if self._writing:
            self._afterwards = do
        else:
            do()

    # Output and events.

    def take(self) -> list[bytes]:
        """Return the output that may leave, in chunks. See :meth:`penstock.core.outbox.Outbox.take`."""
        if self.log is not None:
            self._secure()
            if self._writing and not self._storage_full and self.size > self._high_bytes and self._watcher is not None:
                self._storage_full = True
                self._watcher(True)
        ready = self._ready_output
        if ready:
            self._ready_output = []
        # Without a log, nobody resumes the session any more.
        return ready if self.log is not None else ready + Outbox.take(self)

    def clear(self) -> None:
        """Forget all output, on its way to the disk as well: the next link gets what is not acknowledged."""
        Outbox.clear(self)
        self.forget_output()

    def forget_output(self) -> None:
        """Forget the output that was held for the disk."""
        self._held_output, self._ready_output = [], []

    def sift(self, events: list[Event]) -> list[Event]:
        """Return those of `events` that the user may see, after those that have become durable.

        Requests are held until they are durable, so that none is begun twice. All that follows keeps its place.
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
        """Let the user see `events`, after those that have become durable."""
        self._ready_events += events

    def _take_ready(self, events: list[Event]) -> list[Event]:
        """Return what is durable by now, and `events` after it."""
        ready = self._ready_events
        if not ready:
            return events
        self._ready_events = []
        return ready + events

    # Records.

    def _secure(self) -> None:
        """Begin to write down what has changed, unless something is being written, and hold what may leave then."""
        if self._writing or not (self.size or self.waiting):
            return
        work = self._record()
        self._held_output += Outbox.take(self)
        self._held_events, self.waiting = self.waiting, []
        if work is None or self._run is None:
            self._let_go()
        else:
            self._run(work, self._written)

    def _record(self) -> Callable[[], None] | None:
        """Return what writes down all that has changed; None: nothing has."""
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
        """Go on when a record is durable. Where that has failed, end the session."""
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
            self._let_go()
        self._storage_full = False
        if self._watcher is not None:
            self._watcher(False)

    def _let_go(self) -> None:
        """Let go of what was held: it is durable."""
        self._ready_output += self._held_output
        self._ready_events += self._held_events
        self._held_output, self._held_events = [], []


def _first_request(events: list[Event]) -> int:
    """Return the index of the first request among `events`; their number if there is none."""
    return next((index for index, event in enumerate(events) if type(event) is Requested), len(events))


def without_requests(events: list[Event]) -> list[Event]:
    """Return `events` without those of streams that are requested among them."""
    unbegun = {event.stream_id for event in events if type(event) is Requested}
    return [event for event in events if event.stream_id not in unbegun]


def digest(identity: bytes) -> bytes:
    """Return what is kept of an identity."""
    return sha256(identity).digest()
