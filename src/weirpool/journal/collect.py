"""The collector: writes a stream to a journal, each item once.

The order makes it safe: items arrive; they are appended together with a checkpoint of the session; when they are on
disk, the publisher is informed and more items are requested. If the collector is killed, the next one finds the
checkpoint with the last items, and resumes the session after them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl as tls
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pyarrow as pa

from ..aio.client import connect
from ..aio.peer import Peer
from ..aio.reconnect import Backoff, resuming
from ..aio.streams import Stream
from ..errors import (
    ApplicationError,
    Canceled,
    ConnectError,
    JournalError,
    JournalUnavailable,
    LimitExceeded,
    LinkError,
    LocalError,
    OwnerMissing,
    PeerClosed,
    ProtocolError,
    ResumeRejected,
    SetupRejected,
    WeirpoolError,
)
from ..functions import check_plain
from ..payload import Payload
from ..protocols import spec_of
from ..settings import DEFAULT_SETTINGS, Settings
from ..urls import parse_url
from ..wire.columns import ColumnBuilder, batch_of
from .committer import Committer, Items, append
from .ended import session_errors
from .feedlog import FeedLog, Place, State, fits
from .identity import Request
from .progress import RETRY, USED_UP, Phase, Progress, Window, closing, settled, until_room, write
from .renewal import FIRST_RENEWAL, RENEWAL, Renewal
from .rhythm import LINGER, Rhythm
from .writer import DEFAULT_BUDGET_BYTES

__all__ = ["Collector", "Progress"]

logger = logging.getLogger(__name__)

SETTLING: Final = 2.0
"""Seconds after which a stream counts as opened, if it was not rejected."""


class Collector:
    """Collects one stream into one log of a journal.

    Args:
        url: The publisher.
        route: The stream.
        journal: The journal's folder; created if necessary.
        source: The log's name; the route by default.
        data: The request's data.
        budget_bytes: Bytes of rows that readers may leave unread before the publisher is slowed down.
        credit: Maximum items in flight; by default as many as fit into `window_bytes`, at most 262,144.
        metadata: The request's metadata, in addition to its route.
        settings: For the connection. Resumption is requested in any case.
        ssl: For TLS; by default the system's certificate authorities are trusted, or the URL's.
        again: Collect again although the publisher has completed the stream before. The request must be the same,
            because a log collects only one request.
        accept_loss: Continue in a log whose end is lost, and record the lost rows as a gap.
        request: The request that the log records; by default the route, the data and the metadata. Pass it if these
            contain values that change each time, such as credentials.
        backoff: The delays between attempts to connect; by default at most 0.1 seconds.
        window_bytes: Bytes of items in flight; 16 MiB by default. A process with many feeds has less for each.
        on_batch: Called with the first position and the items of each durable batch. It must not block or raise.
        linger: Seconds between two batches of a slow stream; by default 0.05, and up to 0.25 with many feeds.
        committer: Shared by the feeds of a process that collect into this journal: their batches are synced together.
        segment_seconds: Start another segment when the last one is older, so that it can be sealed.
        setup: The set-up of each connection, as for `connect`. The log does not record it.

    Attributes:
        progress: The progress so far.

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
        backoff: Backoff | None = None,
        window_bytes: int | None = None,
        on_batch: Callable[[int, pa.RecordBatch], None] | None = None,
        linger: float | None = None,
        committer: Committer | None = None,
        segment_seconds: float = float("inf"),
        setup: bytes | Payload = b"",
    ) -> None:
        self.progress, self._window = Progress(), Window(credit, window_bytes)
        self._url, self._route, self._journal, self._ssl, self._setup = url, route, journal, ssl, setup
        self._request = Payload(data, metadata)
        # If sessions cannot outlive their links, each broken link leaves a gap.
        self._settings = replace(settings, resume=spec_of(parse_url(url).protocol).resumes)
        self._again, self._slowed, self._settled = again, False, 0.0
        if on_batch is not None:
            check_plain(on_batch, "on_batch")
        self._backoff, self._on_batch = backoff or resuming(), on_batch
        self._committer, self._rhythm, self._renewal = committer, Rhythm(linger, committer), Renewal()
        self._place = Place(
            journal=journal,
            source=source if source is not None else route,
            request=request or Request(route, data, metadata, url),
            replica=None if committer is None else committer.replica,
            options={"budget_bytes": budget_bytes, "accept_loss": accept_loss, "segment_seconds": segment_seconds},
        )

    async def run(self) -> None:
        """Collect until the publisher completes the stream; return at once if it is complete already.

        Waits for a publisher that goes away. Items lost meanwhile, which its protocol or its memory cannot recover, are
        recorded as a gap. A stream that never opens leaves no log.

        Raises:
            ApplicationError: The publisher failed the stream; if it only abandoned it, the stream is opened again.
            JournalMismatch: The log collects another request.
            JournalError: The journal cannot be written, for a reason other than a full disk.
            SessionError: The publisher uses another protocol, or rejects the client.
            ConnectError: No server answers the first attempt; later attempts are repeated without limit.

        """
        async with AsyncExitStack() as stack:
            if self._committer is not None:
                stack.enter_context(self._committer.feed())
            log = await self._opened()
            # After the log is closed: until then, it may not be opened again.
            stack.callback(self.progress.stopped)
            await stack.enter_async_context(closing(log.close))
            stack.callback(self._rhythm.stop)
            stack.callback(self._renewal.stop)
            self.progress.position = log.position
            if self._again:
                log.reopen()
            self.progress.already = log.state.done
            if log.loss:
                await self._lost(log, log.loss)
            try:
                await self._until_done(log)
                self.progress.turn(Phase.COMPLETE)
            except JournalError:
                raise
            except WeirpoolError:
                log.abandon()
                raise
            finally:
                # Also what was written while the collector was canceled.
                self.progress.position, self.progress.gaps = log.position, log.gaps

    async def _opened(self) -> FeedLog:
        """Open the log; wait for room while the disk is full."""
        while True:
            try:
                log = FeedLog(self._place)
            except JournalUnavailable as error:
                await until_room(self.progress, error)
            else:
                self.progress.turn(Phase.CONNECTING)
                return log

    async def _until_done(self, log: FeedLog) -> None:
        """Collect over successive sessions."""
        connected = log.state.session != 0
        while not log.state.done:
            try:
                with session_errors():
                    await self._session(log)
                self._backoff.reset()
            except SetupRejected as error:
                await self._rejected(log, error)
            except ResumeRejected as error:
                await self._lost(log, str(error))
            except OwnerMissing as error:
                await self._lost(log, str(error))
                await self._wait_to_retry(log, error)
            except LocalError as error:
                if log.state.checkpoint is None:
                    raise
                await self._lost(log, f"the session cannot be restored: {error}")
            except Canceled as error:
                # The publisher's process has ended, and the next one cannot continue the stream.
                connected = True
                await self._lost(log, f"the publisher abandoned the stream: {error}")
                await self._wait_to_retry(log, error)
            except ApplicationError as error:
                if not log.opening:
                    await self._lost(log, f"the publisher failed the stream: {error}")
                raise
            except ConnectError as error:
                if not connected:
                    raise
                await self._wait_to_retry(log, error)
            except (LinkError, PeerClosed) as error:
                connected = True
                if log.state.checkpoint is None:
                    await self._lost(log, str(error))
                await self._wait_to_retry(log, error)

    async def _rejected(self, log: FeedLog, error: SetupRejected) -> None:
        """Wait if the rejection is temporary; otherwise drop the session's state, and continue without resumption.

        If no item has arrived in the session, nothing is lost.
        """
        if error.temporary:
            await self._wait_to_retry(log, error)
            return
        if not self._settings.resume:
            raise error
        logger.warning("%s: %s; without resumption, a broken connection leaves a gap", self._url, error)
        self._settings = replace(self._settings, resume=False)
        if not log.opening:
            await self._lost(log, str(error))
        elif log.state.begun:
            await write(self.progress, log.keep, State(session=log.state.session))

    async def _wait_to_retry(self, log: FeedLog, error: WeirpoolError) -> None:
        """Wait before another attempt to connect, and report the reason."""
        logger.info("%s: %s", self._url, error)
        self.progress.turn(Phase.CONNECTING, f"{error}; the collector tries again")
        self.progress.reconnects += 1
        await asyncio.sleep(self._backoff.next())
        if log.is_old():
            # Nothing arrives that would complete the segment.
            await write(self.progress, log.renew)

    async def _session(self, log: FeedLog) -> None:
        """Collect over one session: that of the checkpoint, or a new one."""
        checkpoint = log.state.checkpoint
        # A new stream requests a whole window. Readers are other processes, so the budget is polled.
        while checkpoint is None and not self._room(log):  # noqa: ASYNC110
            await asyncio.sleep(RETRY)
        if checkpoint is not None and log.is_replicated:
            # The session may be another collector's by now, which must not lose its connection to this one.
            await write(self.progress, log.confirm)
        # A server that has not answered has begun no stream: a collector that is stopped until then loses nothing.
        confirm = checkpoint is None and spec_of(parse_url(self._url).protocol).answers
        form: dict[str, Any] = {"settings": self._settings, "setup": self._setup, "ssl": self._ssl, "confirm": confirm}
        async with connect(self._url, checkpoint=checkpoint, secret=log.token, reconnect=False, **form) as peer:
            try:
                stream = await self._stream(log, peer, resumed=checkpoint is not None)
                await self._collect(log, peer, stream)
            except (asyncio.CancelledError, JournalError):
                # The publisher keeps the session, and the next process continues it from the checkpoint.
                peer.detach()
                raise
            except (ProtocolError, LimitExceeded) as error:
                if not peer.closed:
                    # Only the stream failed, so the session cannot be resumed with it.
                    await self._lost(log, f"the stream failed: {error}")
                raise

    async def _stream(self, log: FeedLog, peer: Peer, resumed: bool) -> Stream:
        """Return the stream of a resumed session, or open it."""
        stream = peer.adopt() if resumed else None
        if stream is None:
            if resumed:
                await self._lost(log, "the stream had failed before the collector was stopped")
            # This must be durable before the first item of the stream.
            await write(self.progress, log.begin, peer.secret)
            self._window.open(self._window.first)
            stream = peer.stream(self._route, self._request, credit=self._window.first, manual=True)
            await stream.__aenter__()
            self._settled = asyncio.get_running_loop().time() + SETTLING
            await self._record(log, peer, stream, ColumnBuilder(), 0)
            self._renew_after(log, FIRST_RENEWAL)
        else:
            self._window.open(log.state.outstanding)
            self._settled = asyncio.get_running_loop().time() + SETTLING
            # The checkpoint is from the earlier process: it covers no output of this one.
            self._renewal.after(0.0)
        self._backoff.reset()
        self.progress.linked = lambda: peer.linked
        self.progress.turn(Phase.LIVE)
        return stream

    async def _collect(self, log: FeedLog, peer: Peer, stream: Stream) -> None:
        """Move items from the stream to the log until its end."""
        builder = ColumnBuilder()
        while not log.state.done:
            await self._arrival(stream)
            if peer.closed and not stream.over:
                raise OwnerMissing("the session has ended without ending its stream; please report this defect")
            stream.take(builder)
            if len(builder) < self._window.outstanding and not stream.over:
                await self._rhythm.gather(stream, len(builder), builder.size)
                stream.take(builder)
            rows, size = len(builder), builder.size
            if rows:
                self._window.resize(rows, size)
            # Nothing is requested while the budget is used up.
            grant = self._window.wanted(rows) if self._room(log) else 0
            if rows or grant or stream.over or self._renewal.is_due():
                await self._record(log, peer, stream, builder, grant)
                self.progress.rows += rows - len(builder)
                self.progress.size += size - builder.size
            self._rhythm.appended()

    def _renew_after(self, log: FeedLog, seconds: float) -> None:
        """Renew the checkpoint after this time, if there is one; if there is no log yet, create it."""
        self._renewal.after(seconds if log.state.checkpoint is not None or log.opening else None)

    async def _arrival(self, stream: Stream) -> None:
        """Wait until there is work."""
        if self._window.outstanding > 0 or stream.over:
            waiter = stream.waiter()
            if waiter is not None:
                await self._renewal.wait(waiter)
            else:
                # Items requested last may be here already. The next checkpoint covers them, so they must be dispatched.
                await asyncio.sleep(0)
            if stream.over:
                # It raises the error of the stream after the last item.
                await stream.arrival()
        else:
            # All requested items have arrived, and the budget is used up: wait for readers.
            await asyncio.sleep(RETRY)

    async def _record(self, log: FeedLog, peer: Peer, stream: Stream, builder: ColumnBuilder, grant: int) -> None:
        """Append the items with their checkpoint, then inform the publisher and request more.

        Nothing may be awaited between taking the items and making the checkpoint, which covers exactly these items.
        """
        rows = len(builder)
        checkpoint = peer.checkpoint(stream, grant)
        if checkpoint is not None and not fits(checkpoint):
            # A large item has arrived in part: the items wait for the rest of it.
            stream.resume()
            await asyncio.sleep(LINGER)
            return
        self._window.outstanding += grant - rows
        self.progress.granted = self._window.outstanding
        done = stream.over and stream.error is None
        state = State(checkpoint, True, done, self._window.outstanding, log.state.session, first=log.state.first)
        if rows or done or not log.opening or asyncio.get_running_loop().time() >= self._settled:
            size = builder.size
            taken = builder.take()
            await self._append(Items(log, taken, self._route, state, size))
            if rows and self._on_batch is not None:
                self._on_batch(log.position - rows, batch_of(taken))
            self.progress.position = log.position
            self.progress.gaps = log.gaps
        else:
            # The publisher may still reject the stream: then no log is created.
            await write(self.progress, log.keep, state)
        self._renew_after(log, RENEWAL)
        if checkpoint is not None:
            peer.commit()
        elif grant:
            stream.grant(grant)

    async def _append(self, items: Items) -> None:
        """Append items, durably."""
        if self._committer is None:
            await write(self.progress, append, items)
        else:
            await settled(self.progress, partial(self._committer.append, items))

    def _room(self, log: FeedLog) -> bool:
        """Return True if the budget is not used up; otherwise report that."""
        room = log.room()
        if self.progress.slowed(room):
            # Slow readers are normal: one line is enough.
            logger.log(logging.INFO if self._slowed else logging.WARNING, "%s: %s", self._journal, USED_UP)
            self._slowed = True
        return room

    async def _lost(self, log: FeedLog, reason: str) -> None:
        """Record that items may be missing, if a stream was open. The next stream starts after the gap."""
        if not log.state.begun:
            return
        before = log.gaps
        await write(self.progress, log.append_gap, reason)
        if log.gaps > before:
            logger.warning("%s: a gap at position %d: %s", self._url, log.position, reason)
        self.progress.gaps = log.gaps
