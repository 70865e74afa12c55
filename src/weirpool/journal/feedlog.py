"""A collector's log, which is created when there is something to record.

A stream may never open, because its route is mistyped or its publisher rejects it. Until the first item, and for a
moment after the stream was opened, the collector's state is stored with its secret, and there is no log.

The private part of a checkpoint is always stored there. Only its public part is in the log, which people copy.
"""

from __future__ import annotations

import os
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from ..checkpoints import join, split
from ..errors import JournalCorrupt, JournalLocked
from . import secret as secrets
from .disk import disk_errors, make_folder
from .durability import Replica, Staged
from .encoder import Rows
from .format import NO_ITEMS
from .identity import Request
from .layout import LOCK, log_folder
from .lock import Lock
from .secret import Secret
from .storage import LogFolder
from .writer import MAX_STATE_BYTES, JournalWriter

__all__ = ["NOT_RESUMED", "NO_TOKEN", "FeedLog", "Place", "StagedItems", "State", "fits", "stream_start"]

NOT_RESUMED = "the collector was stopped, and its session cannot be resumed"
NO_TOKEN = "the collector was stopped, and the token of its session is missing from _secret"

MAX_PRIVATE_BYTES = 512 * 1024
"""Bytes of requests that the publisher has not confirmed; `MAX_SECRET_BYTES` includes them."""
STATE_MARGIN = 1_024
"""Bytes that a collector's record adds to a checkpoint."""


class State(msgspec.Struct, array_like=True):
    """The state that a collector records with its rows."""

    checkpoint: bytes | None = None
    """The session's checkpoint; None if it cannot be resumed. On disk its private part is separate."""
    begun: bool = False
    """A stream was opened: items that a new one may have missed are a gap, unless already recorded."""
    done: bool = False
    """The publisher completed the stream."""
    outstanding: int = 0
    """Items that were requested and have not arrived."""
    session: int = 0
    """The number of the session, whose token is in `_secret`."""
    covered: bool = False
    """The log ends with a gap that covers everything the stream has missed so far."""
    first: int = 0
    """The position of the stream's first item."""


def fits(checkpoint: bytes) -> bool:
    """Return True if a checkpoint fits into the log and the secret."""
    if len(checkpoint) <= MAX_STATE_BYTES - STATE_MARGIN:
        return True
    public, private = split(checkpoint)
    return len(public) <= MAX_STATE_BYTES - STATE_MARGIN and len(private) <= MAX_PRIVATE_BYTES


def stream_start(state: bytes | None) -> int | None:
    """Return the position of the first item of the stream in a log's state; None if no collector has opened one."""
    try:
        found = None if state is None else msgspec.msgpack.decode(state, type=State)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return found.first if found is not None and (found.begun or found.done) else None


@dataclass(frozen=True, kw_only=True)
class Place:
    """The place of a collector's log, and its request."""

    journal: str | os.PathLike[str]
    source: str
    request: Request
    options: dict[str, Any]
    replica: Replica | None = None
    """Keeps the log elsewhere; None: it is durable on this machine."""


@dataclass(frozen=True, slots=True)
class StagedItems:
    """Items that are written to their log and not durable yet. Make `staged` durable, then `publish` or `cancel`."""

    feed: FeedLog
    log: JournalWriter
    staged: Staged
    state: State

    def publish(self) -> None:
        """Publish the items to readers; see `JournalWriter.publish`."""
        self.log.publish(self.staged)
        self.feed.recorded(self.state)

    def cancel(self) -> None:
        """Remove the items: they did not become durable."""
        self.log.cancel(self.staged)


class FeedLog:
    """The log of one collector, held until `close`. All methods except the properties may wait for the disk.

    Attributes:
        state: The last recorded state, of this process or an earlier one.
        token: The token that resumes the session of `state`.
        loss: Why items may be missing at the end of the log, if an earlier process could not record it.
        opening: A stream was opened, and the log has no record of it yet.
        gaps: The number of gaps that this process has recorded in the log.

    Raises:
        JournalLocked: Another process collects into this log.
        JournalMismatch: The log collects another request.
        JournalError: The log cannot be read or written.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._folder = log_folder(place.journal, place.source)
        self._writer: JournalWriter | None = None
        self._lock: Lock | None = None
        self._owner = place.request.digest()
        self._gap = ""
        self._written: State | None = None
        # The content of the file.
        self._secret: Secret | None = None
        self.state = State()
        self.token = b""
        self.loss = ""
        self.opening = False
        self.gaps = 0
        with disk_errors(self._folder, "be created"):
            make_folder(self._folder)
        log = LogFolder.local(self._folder)
        try:
            # Segments without an identity must not be overwritten: opening them reports this.
            if log.identity() is not None or log.segments():
                self._open()
            else:
                self._lock = Lock(self._folder / LOCK)
            self._recall()
        except BaseException:
            self.close()
            raise

    @property
    def exists(self) -> bool:
        """True if the log exists."""
        return self._writer is not None

    @property
    def position(self) -> int:
        """The position of the next row."""
        return 0 if self._writer is None else self._writer.position

    def room(self) -> bool:
        """Return True if readers have left less than the budget, as of now."""
        if self._writer is None or self._writer.room():
            return True
        # Readers only free space, so their positions matter when it is used up.
        self._writer.refresh()
        return self._writer.room()

    def begin(self, token: bytes) -> State:
        """Record that a stream is about to be opened, in the session that `token` resumes. Call this first."""
        state = State(begun=True, session=secrets.new_session(), first=self.position)
        self._keep(Secret(owner=self._owner, session=state.session, token=token, gap=self._gap), state)
        self.token = token
        self.opening = True
        return state

    def keep(self, state: State) -> None:
        """Record the state of an opened stream while the log has no record of it."""
        self._keep(Secret(owner=self._owner, session=state.session, token=self.token, gap=self._gap), state)

    def append(self, batch: Rows, stream: str, state: State) -> int:
        """Append items and the state; see `JournalWriter.append`. A pending loss is recorded before them."""
        writer, public = self._prepared(state)
        writer.append(batch, stream, public)
        self.recorded(state)
        return writer.position

    def stage(self, batch: Rows, stream: str, state: State) -> StagedItems | None:
        """Write items and the state as `append` does, but do not sync them; see `JournalWriter.stage`."""
        writer, public = self._prepared(state)
        staged = writer.stage(batch, stream, public)
        if staged is None:
            self.recorded(state)
            return None
        return StagedItems(self, writer, staged, state)

    def _prepared(self, state: State) -> tuple[JournalWriter, bytes]:
        """Make durable what must be before a state; return the writer, and the public part of the state."""
        writer = self._writer or self._create()
        public, private = _split_state(state)
        if self._secret is not None and self._secret.private != private and not state.done:
            # This must be durable before the log refers to it.
            self._save(msgspec.structs.replace(self._secret, private=private))
        if self._gap:
            # If the process is killed here, the next one continues the stream and does not record the gap again.
            covered = msgspec.structs.replace(self.state, covered=True)
            writer.append_gap(self._gap, _split_state(covered)[0])
            self._gap = ""
            self.gaps += 1
            self.recorded(covered)
        return writer, public

    @property
    def is_replicated(self) -> bool:
        """True if the log counts only as far as it is kept elsewhere."""
        return self._place.replica is not None

    def confirm(self) -> None:
        """Check that no other process has taken the log over; `JournalError` if one has."""
        if self._place.replica is not None:
            self._place.replica.confirm().result()

    def is_old(self) -> bool:
        """Return True if the last segment could be complete by now, and only the next append makes it so."""
        return self._writer is not None and not self.opening and self._writer.is_old()

    def renew(self) -> None:
        """Record the state again, which completes an old segment, so that it can be sealed."""
        self.append(NO_ITEMS, "", self.state)

    def append_gap(self, reason: str) -> int:
        """Record that the open stream has ended, and that items after the log's end may be missing.

        If the log has no record of the stream, the gap is recorded with the next row, or not at all.
        """
        state = State(session=self.state.session)
        if self.opening:
            self._remember_gap(reason)
        elif self._writer is not None:
            if self.state.covered:
                self._writer.append(NO_ITEMS, "", msgspec.msgpack.encode(state))
            else:
                self._writer.append_gap(reason, msgspec.msgpack.encode(state))
                self.gaps += 1
            self.recorded(state)
        return self.position

    def reopen(self) -> None:
        """Allow a complete stream to be opened again."""
        if self.state.done:
            self.state = State()

    def abandon(self) -> None:
        """Forget a stream that never opened."""
        if self.opening:
            self._drop()
            self.opening = False
            self._gap = ""

    def close(self) -> None:
        """Close the log. If there is neither a log nor a secret, remove its folder."""
        if self._writer is not None:
            self._writer.close()
        elif self._lock is not None:
            if secrets.load(self._folder) is None:
                self._lock.remove()
                with suppress(OSError):
                    self._folder.rmdir()
            self._lock.close()

    def _open(self) -> JournalWriter:
        place = self._place
        writer = JournalWriter.open(
            place.journal,
            place.source,
            request=place.request,
            lock=self._lock,
            replica=place.replica,
            **place.options,
        )
        self._lock = None
        self._owner = writer.uuid
        self._writer = writer
        return writer

    def _create(self) -> JournalWriter:
        if self._lock is None or self._lock.closed:
            # An earlier attempt found no space, and released the lock.
            self._lock = Lock(self._folder / LOCK)
            if LogFolder.local(self._folder).segments():
                raise JournalLocked(f"{self._folder}: another process has written to this log; stop it")
        return self._open()

    def _recall(self) -> None:
        """Read the state of an earlier process: from the log, or of a stream that the log has no record of."""
        secrets.tidy(self._folder)
        if self._writer is not None and self._writer.state is not None:
            self.state = self._written = self._decoded(self._writer.state)
        secret = secrets.load(self._folder)
        digest = self._place.request.digest()
        if secret is not None and secret.session != self.state.session:
            if secret.owner == self._owner or (self._written is None and secret.owner == digest):
                self.opening = True
                self._gap = secret.gap
                self.state = self._decoded(secret.state) if secret.state else State(begun=True, session=secret.session)
            else:
                secret = None
        self._secret = secret
        self.token = b"" if secret is None else secret.token
        if self.state.checkpoint is not None:
            checkpoint = join(self.state.checkpoint, b"" if secret is None else secret.private)
            self.state = msgspec.structs.replace(self.state, checkpoint=checkpoint)
        if self.state.begun and not self.state.done:
            if self.state.checkpoint is None:
                self.loss = NOT_RESUMED
            elif not self.token:
                self.loss = NO_TOKEN

    def _decoded(self, state: bytes) -> State:
        try:
            return msgspec.msgpack.decode(state, type=State)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise JournalCorrupt(
                f"{self._folder}: the collector's state in log {self._place.source!r} was not written by a collector "
                f"({error}); choose another source name"
            ) from None

    def _keep(self, secret: Secret, state: State) -> None:
        public, private = _split_state(state)
        kept = self._save(msgspec.structs.replace(secret, state=public, private=private))
        if kept is not None:
            kept.result()
        self.state = state

    def _save(self, secret: Secret) -> Future[None] | None:
        """Write the secret. A replica has it when the result is done, or before it has later records of this log."""
        secrets.save(self._folder, secret)
        self._secret = secret
        replica = self._place.replica
        return None if replica is None else replica.keep(self._place.source, secrets.encode(secret))

    def _drop(self) -> None:
        secrets.drop(self._folder)
        self._secret = None
        if self._place.replica is not None:
            self._place.replica.keep(self._place.source, None)

    def _remember_gap(self, reason: str) -> None:
        """Remember a gap that the log has no record of yet. An existing one already covers it."""
        written = self._written
        ends_in_gap = written is not None and not written.begun and not written.done
        if not ends_in_gap and not self._gap:
            self._gap = reason
        self.token = b""
        self.keep(State(session=self.state.session))

    def recorded(self, state: State) -> None:
        """Take over a state that is durable in the log."""
        self.state = self._written = state
        self.opening = False
        if state.done or not state.begun:
            # Its session has ended: the token is no longer needed.
            self._drop()


def _split_state(state: State) -> tuple[bytes, bytes]:
    """Return the public part of a state, and the private part of its checkpoint."""
    if state.checkpoint is None:
        return msgspec.msgpack.encode(state), b""
    public, private = split(state.checkpoint)
    return msgspec.msgpack.encode(msgspec.structs.replace(state, checkpoint=public)), private
