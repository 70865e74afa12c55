"""The collector: takes a stream under credit, and keeps it in a journal, each item once.

The order of things is what makes it safe: items arrive; they are appended together with a checkpoint of the
session; they are on the disk; only then is the publisher told so, and asked for more. A collector that is
killed finds the checkpoint with its last items, and resumes the session behind them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl as tls
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Final

import msgspec

from ..aio.backoff import Backoff, resuming
from ..aio.client import connect
from ..aio.peer import Peer
from ..aio.streams import Stream
from ..dialects import can_resume
from ..errors import (
    ApplicationError,
    Canceled,
    ConnectError,
    DiskFull,
    JournalError,
    LimitExceeded,
    LinkError,
    LocalError,
    OwnerMissing,
    PeerClosed,
    PenstockError,
    ProtocolError,
    ResumeRejected,
    SessionError,
    SetupRejected,
)
from ..payload import Payload
from ..settings import DEFAULT_SETTINGS, Settings
from ..urls import parse_url
from ..wire.columns import ColumnBuilder
from .feedlog import FeedLog, Place, State, fits
from .format import NO_ITEMS
from .identity import Request
from .writer import DEFAULT_BUDGET_BYTES

__all__ = ["Collector", "Progress"]

logger = logging.getLogger(__name__)

WINDOW_BYTES: Final = 16 * 1024 * 1024
"""What may be on its way to the disk: enough for 1 GB/s at 16 ms a flush, and little enough to hold twice."""
FIRST_WINDOW: Final = 1_024
"""Items asked for before anybody knows how large they are."""
SMALLEST_WINDOW: Final = 2
LARGEST_WINDOW: Final = 262_144
LINGER: Final = 0.05
"""Seconds that a small batch waits for company: twenty batches a second are cheap to write and to read."""
LINGER_ROWS: Final = 4_096
"""A batch of this many rows waits no longer."""
RETRY: Final = 0.5
"""Seconds between looks at a full disk, or at a budget that is used up."""
RENEWAL: Final = 20.0
"""Seconds after which a checkpoint is made anew though nothing has come: some sessions say things by themselves, and a
checkpoint allows for only so many of them."""
FIRST_RENEWAL: Final = 2.0
"""The same for the first checkpoint of a stream, which some protocols cannot go on from: nothing has come yet."""
SETTLING: Final = 2.0
"""Seconds after which a stream that nobody has refused counts as opened, though nothing has come."""
USED_UP: Final = (
    "the journal's budget is used up: no reader commits (in Spark, name the query with the option reader), or readers "
    "are slower; `penstock journal forget` drops one that will not come back"
)


class Progress(msgspec.Struct):
    """How far a collector has come.

    Attributes:
        rows: Items that this process has collected.
        size: Their bytes.
        position: The journal's next position.
        gaps: Gaps that this process has recorded.
        already: The stream was complete before this process began.
        waiting: Why nothing more is asked for at the moment; empty while all is well.

    """

    rows: int = 0
    size: int = 0
    position: int = 0
    gaps: int = 0
    already: bool = False
    waiting: str = ""


class Collector:
    """Collects one stream into one log of a journal.

    Args:
        url: The publisher.
        route: The stream.
        journal: The journal's folder; it is made if need be.
        source: The log's name; else the route.
        data: The request's data.
        budget_bytes: Bytes of rows that readers may leave unread before the publisher is slowed.
        credit: Items that may be under way at most; else as many as have 16 MiB, and 262,144 of small ones.
        metadata: The request's metadata, beside its route.
        settings: Of the connection. A session that outlives its links is asked for in any case.
        ssl: Whom to trust, with TLS; else the system's certificate authorities, or what the URL says.
        again: Collect once more although the publisher has completed the stream before. The request must be the same:
            a log collects one request only.
        accept_loss: Go on in a log whose end is gone, and record the rows that are lost as a gap.
        request: What the log is to collect, for another time; else the route, the data and the metadata. Give it where
            these hold what changes each time, such as credentials.

    Attributes:
        progress: How far it has come.

    """

    def __init__(
        self,
        url: str,
        route: str,
        journal: str | os.PathLike[str],
        *,
        source: str | None = None,
        data: bytes = b"",
        metadata: bytes | None = None,
        budget_bytes: int = DEFAULT_BUDGET_BYTES,
        credit: int | None = None,
        settings: Settings = DEFAULT_SETTINGS,
        ssl: tls.SSLContext | None = None,
        again: bool = False,
        accept_loss: bool = False,
        request: Request | None = None,
    ) -> None:
        if credit is not None and credit < 1:
            raise LocalError(f"credit is {credit}; a collector needs at least 1")
        self._url = url
        self._route = route
        self._journal = journal
        self._request = Payload(data, metadata)
        self._ssl = ssl
        self._largest = LARGEST_WINDOW if credit is None else credit
        self._smallest = min(SMALLEST_WINDOW, self._largest)
        self._first = min(FIRST_WINDOW, self._largest)
        # Where sessions cannot outlive their links, each link that breaks leaves a gap.
        self._settings = replace(settings, resume=can_resume(parse_url(url).protocol))
        self._again = again
        self._slowed = False
        self._place = Place(
            journal=journal,
            source=source if source is not None else route,
            request=request or Request(route, data, metadata, url),
            options={"budget_bytes": budget_bytes} | ({"accept_loss": True} if accept_loss else {}),
        )
        # Items that were asked for and have not come; and those to ask for once there is room.
        self._window = self._first
        self._outstanding = 0
        # When a stream that nobody has refused counts as opened.
        self._settled = 0.0
        # When the newest checkpoint is too old; None: there is none.
        self._renewal: float | None = None
        self.progress = Progress()

    async def run(self) -> None:
        """Collect until the publisher completes the stream; a stream that is complete already returns at once.

        A publisher that goes away is waited for. What was lost while it was away, if its protocol or its memory
        cannot make up for it, is recorded as a gap. A stream that never opens leaves no log.

        Raises:
            ApplicationError: The publisher failed the stream; one that only gave it up is asked again.
            JournalMismatch: The log collects another request.
            JournalError: The journal cannot be written, for another reason than a full disk.
            SessionError: The publisher speaks something else, or refuses us.
            ConnectError: Nobody answers at the first try; later on, tries go on for ever.

        """
        with closing(await self._opened()) as log:
            self.progress.position = log.position
            if self._again:
                log.anew()
            self.progress.already = log.state.done
            if log.loss:
                await self._lost(log, log.loss)
            try:
                await self._until_done(log)
            except JournalError:
                raise
            except PenstockError:
                log.abandon()
                raise

    async def _opened(self) -> FeedLog:
        """Open the log; a full disk is waited out."""
        while True:
            try:
                log = FeedLog(self._place)
            except DiskFull as error:
                await self._until_room(error)
            else:
                self.progress.waiting = ""
                return log

    async def _until_done(self, log: FeedLog) -> None:
        """Collect over one session after another."""
        backoff = resuming()
        connected = log.state.session != 0
        while not log.state.done:
            try:
                with _plainly():
                    await self._session(log)
                backoff.reset()
            except SetupRejected as error:
                if error.temporary:
                    await self._again_after(error, backoff)
                    continue
                if not self._settings.resume:
                    raise
                logger.warning("%s resumes no sessions: if the connection breaks there will be a gap", self._url)
                self._settings = replace(self._settings, resume=False)
                await self._refused(log, str(error))
            except ResumeRejected as error:
                await self._lost(log, str(error))
            except OwnerMissing as error:
                await self._lost(log, str(error))
                await self._again_after(error, backoff)
            except LocalError as error:
                if log.state.checkpoint is None:
                    raise
                await self._lost(log, f"the session cannot be restored: {error}")
            except Canceled as error:
                # Its process has ended, and the next one cannot go on with the stream.
                connected = True
                await self._lost(log, f"the publisher gave the stream up: {error}")
                await self._again_after(error, backoff)
            except ApplicationError as error:
                if not log.opening:
                    await self._lost(log, f"the publisher failed the stream: {error}")
                raise
            except ConnectError as error:
                if not connected:
                    raise
                await self._again_after(error, backoff)
            except (LinkError, PeerClosed) as error:
                connected = True
                if log.state.checkpoint is None:
                    await self._lost(log, str(error))
                await self._again_after(error, backoff)

    async def _refused(self, log: FeedLog, reason: str) -> None:
        """Drop the state of a session that was refused. If nothing had come of it, nothing is lost."""
        if not log.opening:
            await self._lost(log, reason)
        elif log.state.begun:
            await self._write(partial(log.keep, State(session=log.state.session)))

    async def _again_after(self, error: PenstockError, backoff: Backoff) -> None:
        """Wait for a publisher that is away, and let people know."""
        logger.info("%s: %s", self._url, error)
        self.progress.waiting = f"{error}; the publisher is tried again"
        await asyncio.sleep(backoff.next())

    async def _session(self, log: FeedLog) -> None:
        """Collect over one session: that of the checkpoint, or a new one."""
        checkpoint = log.state.checkpoint
        # A new stream brings a whole window. Readers are other processes, so room is polled for.
        while checkpoint is None and not self._room(log):  # noqa: ASYNC110
            await asyncio.sleep(RETRY)
        async with connect(
            self._url,
            settings=self._settings,
            ssl=self._ssl,
            checkpoint=checkpoint,
            secret=log.token,
            reconnect=False,
        ) as peer:
            try:
                stream = await self._stream(log, peer, resumed=checkpoint is not None)
                await self._collect(log, peer, stream)
            except (asyncio.CancelledError, JournalError):
                # The publisher keeps the session, and whoever reads the checkpoint goes on with it.
                peer.detach()
                raise
            except (ProtocolError, LimitExceeded) as error:
                if not peer.closed:
                    # The stream failed alone, so nobody who resumes the session can go on with it.
                    await self._lost(log, f"the stream failed: {error}")
                raise

    async def _stream(self, log: FeedLog, peer: Peer, resumed: bool) -> Stream:
        """Return the stream of a session that was resumed, or open it."""
        stream = peer.adopt() if resumed else None
        if stream is None:
            if resumed:
                await self._lost(log, "the stream had failed before the collector was stopped")
            # Durable before the stream can bring anything.
            await self._write(partial(log.begin, peer.secret))
            self._window = self._outstanding = self._first
            stream = peer.stream(self._route, self._request, credit=self._first, manual=True)
            await stream.__aenter__()
            self._settled = asyncio.get_running_loop().time() + SETTLING
            await self._record(log, peer, stream, ColumnBuilder(), 0)
            self._renew_after(log, FIRST_RENEWAL)
        else:
            self._outstanding = log.state.outstanding
            self._settled = asyncio.get_running_loop().time() + SETTLING
            self._window = max(self._outstanding, self._first)
            # The checkpoint is the earlier process's: it covers nothing of what this one says.
            self._renewal = 0.0
        return stream

    async def _collect(self, log: FeedLog, peer: Peer, stream: Stream) -> None:
        """Move items from the stream to the log until there are no more."""
        builder = ColumnBuilder()
        while not log.state.done:
            await self._arrival(stream)
            if peer.closed and not stream.over:
                raise OwnerMissing("the session has ended, and its stream was not told; please report this defect")
            stream.take(builder)
            if len(builder) < LINGER_ROWS and len(builder) < self._outstanding and not stream.over:
                await asyncio.sleep(LINGER)
                stream.take(builder)
            rows, size = len(builder), builder.size
            if rows:
                self._resize(rows, size)
            grant = self._grant(log, rows)
            if rows or grant or stream.over or self._stale():
                await self._record(log, peer, stream, builder, grant)
                self.progress.rows += rows - len(builder)
                self.progress.size += size - builder.size

    def _renew_after(self, log: FeedLog, seconds: float) -> None:
        """Have the checkpoint made anew after that time, if there is one, and the log if there is none yet."""
        kept = log.state.checkpoint is not None or log.opening
        self._renewal = asyncio.get_running_loop().time() + seconds if kept else None

    def _stale(self) -> bool:
        """Whether the newest checkpoint is too old."""
        return self._renewal is not None and asyncio.get_running_loop().time() >= self._renewal

    async def _arrival(self, stream: Stream) -> None:
        """Wait until there is something to do."""
        if self._outstanding > 0 or stream.over:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self._renewal):
                    await stream.arrival()
        else:
            # Everything that was asked for has come, and there is no room for more: readers must make some.
            await asyncio.sleep(RETRY)

    async def _record(self, log: FeedLog, peer: Peer, stream: Stream, builder: ColumnBuilder, grant: int) -> None:
        """Append what was taken with the checkpoint that belongs to it, then tell the publisher and ask for more.

        Between taking the items and making the checkpoint nothing may be awaited: it covers just what was taken.
        """
        rows = len(builder)
        checkpoint = peer.checkpoint(stream, grant)
        if checkpoint is not None and not fits(checkpoint):
            # A large item is half received: what has come waits for the rest of it.
            await asyncio.sleep(LINGER)
            return
        self._outstanding += grant - rows
        done = stream.over and stream.error is None
        state = State(checkpoint, True, done, self._outstanding, log.state.session)
        if rows or done or not log.opening or asyncio.get_running_loop().time() >= self._settled:
            batch = builder.finish() if rows else NO_ITEMS
            await self._write(partial(log.append, batch, self._route, state))
            self.progress.position = log.position
            self.progress.gaps = log.gaps
        else:
            # Its publisher may still say that there is no such stream: then there will be no log.
            await self._write(partial(log.keep, state))
        self._renew_after(log, RENEWAL)
        if checkpoint is not None:
            peer.commit()
        elif grant:
            stream.grant(grant)
        # What that asked for may have been here: the next checkpoint covers it, so it has to be taken before.
        await asyncio.sleep(0)

    def _resize(self, rows: int, size: int) -> None:
        """Fit the window to how large items are."""
        fitting = WINDOW_BYTES // max(1, size // rows)
        # Not more than twice as large at once: the next items may be larger.
        self._window = max(self._smallest, min(fitting, self._largest, 2 * self._window))

    def _grant(self, log: FeedLog, rows: int) -> int:
        """Return how many more items to ask for, once `rows` are appended: none while readers have left too much."""
        if not self._room(log):
            return 0
        wanted = self._window - (self._outstanding - rows)
        # A few at a time are not worth a trip to the disk, unless nothing else is under way.
        return wanted if wanted >= self._window // 2 or self._outstanding == rows else 0

    def _room(self, log: FeedLog) -> bool:
        """Return whether the budget has anything left; where it has not, say so."""
        room = log.room()
        if room:
            self.progress.waiting = ""
        elif not self.progress.waiting:
            self.progress.waiting = USED_UP
            # Slower readers are daily life: one line is enough.
            logger.log(
                logging.INFO if self._slowed else logging.WARNING, "%s: %s", self._journal, self.progress.waiting
            )
            self._slowed = True
        return room

    async def _lost(self, log: FeedLog, reason: str) -> None:
        """Record that items may be missing, if a stream was open. The next one begins behind that."""
        if not log.state.begun:
            return
        before = log.gaps
        await self._write(partial(log.append_gap, reason))
        if log.gaps > before:
            logger.warning("%s: a gap at position %d: %s", self._url, log.position, reason)
        self.progress.gaps = log.gaps

    async def _write(self, write: Callable[[], object]) -> None:
        """Call `write` in a thread, because it waits for the disk; a full disk is waited out."""
        before = self.progress.waiting
        while True:
            writing = asyncio.ensure_future(asyncio.to_thread(write))
            try:
                await asyncio.wait((writing,))
            except asyncio.CancelledError:
                # Whoever cancels us closes the log next, and the thread cannot be stopped: it has to end first.
                while not writing.done():
                    with suppress(asyncio.CancelledError):
                        await asyncio.wait((writing,))
                if (failure := writing.exception()) is not None:
                    logger.warning("the collector was canceled, and its last write failed: %s", failure)
                raise
            try:
                writing.result()
                break
            except DiskFull as error:
                # What has come is kept in memory, and nothing more is asked for.
                await self._until_room(error)
        self.progress.waiting = before

    async def _until_room(self, error: DiskFull) -> None:
        """Wait for room on the disk, and let people know."""
        if self.progress.waiting != str(error):
            logger.warning("%s", error)
        self.progress.waiting = str(error)
        await asyncio.sleep(RETRY)


@contextmanager
def _plainly() -> Iterator[None]:
    """Raise what ended a session as what it is, where the protocol fails its streams with a code of its own."""
    try:
        yield
    except ApplicationError as error:
        if isinstance(error.__cause__, SessionError):
            raise error.__cause__ from None
        raise
