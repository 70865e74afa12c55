"""What readers record in a journal that collectors serve: `weirpool.journal.ports.Coordinator` over the network."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

import msgspec

from ..aio.peer import Peer
from ..errors import JournalError, JournalLocked
from ..journal.gaps import Gap
from ..journal.layout import Extent
from ..journal.lock import Owner
from ..journal.retention import Committed
from .links import links
from .messages import PREFIX, Commit, Delete, Hold, Named, Record
from .remote import RemoteJournal

__all__ = ["RemoteCoordinator"]

logger = logging.getLogger("weirpool.serving")

PATIENCE: Final = 5.0
"""Seconds: a driver asks again by itself."""

AGAIN: Final = 0.5
"""Seconds until a name that was held, and is refused now, is asked for again."""
REFUSALS: Final = 30
"""Refusals before a warning: until the lifetime of a link has passed, the name may be held for a lost link of ours."""


class RemoteCoordinator:
    """Records at the collectors what readers commit and skip."""

    def __init__(self, url: str) -> None:
        self._collectors = RemoteJournal.at(url).collectors

    def cursors(self, source: str) -> dict[str, Committed]:
        """Return the content of each cursor of a log, by the cursor's name."""
        found: dict[str, Committed] = self._call(source, "readers", Named(source=source), dict[str, Committed])
        return found

    def commit(self, source: str, cursor: str, position: int, *, query: str | None) -> int:
        """Set a cursor's position, even if it was higher before."""
        asked = Commit(source=source, cursor=cursor, position=position, query=query)
        return int(self._call(source, "commit", asked, int))

    def trim(self, source: str, cursor: str, position: int, *, query: str | None, retain_bytes: int) -> int:
        """Commit a position, and delete the rows that no reader needs."""
        asked = Commit(source=source, cursor=cursor, position=position, query=query, retain_bytes=retain_bytes)
        return int(self._call(source, "commit", asked, int))

    def seek(self, source: str, reader: str, position: int) -> int:
        """Set the position of a reader that belongs to no query, forward or back."""
        return int(self._call(source, "seek", Commit(source=source, cursor=reader, position=position), int))

    def forget(self, source: str, reader: str) -> dict[str, Committed | None]:
        """Remove a reader that will not return."""
        asked = Named(source=source, reader=reader)
        found: dict[str, Committed | None] = self._call(source, "forget", asked, dict[str, Committed | None])
        return found

    def cursors_of(self, source: str, reader: str | None) -> dict[str, Committed | None]:
        """Return the content of each cursor of a reader, or of all, by the cursor's name; None for a damaged one."""
        asked = Named(source=source, reader=reader)
        found: dict[str, Committed | None] = self._call(source, "cursors", asked, dict[str, Committed | None])
        return found

    def deletable(self, source: str, position: int) -> list[Extent]:
        """Return the segments that `delete` deletes, if no reader needs them."""
        found: list[Extent] = self._call(source, "deletable", Delete(source=source, position=position), list[Extent])
        return found

    def delete(self, source: str, position: int, *, force: bool) -> list[Extent]:
        """Delete the segments below a position, and return them."""
        asked = Delete(source=source, position=position, force=force)
        found: list[Extent] = self._call(source, "delete", asked, list[Extent])
        return found

    def drop(self, source: str, cursor: str) -> None:
        """Remove a cursor that belongs to no query."""
        self._call(source, "drop", Named(source=source, reader=cursor), None)

    def hold(self, name: str) -> RemoteHold | None:
        """Hold a name at all collectors until `close`, or until this process ends."""
        held = RemoteHold(self._collectors.urls, name)
        try:
            held.begin()
        except JournalLocked:
            held.close()
            return None
        except BaseException:
            held.close()
            raise
        return held

    def holder(self, name: str) -> Owner | None:
        """Return the process that holds a name, or held it when it was killed; None if unknown."""
        owners: list[Owner | None] = self._collectors.call_each("holder", name, Owner | None)
        return max((owner for owner in owners if owner is not None), key=lambda owner: owner.since, default=None)

    def recorded(self, source: str) -> list[Gap]:
        """Return the losses that were recorded apart from the rows, in order."""
        found: list[Gap] = self._call(source, "losses", Named(source=source), list[Gap])
        return found

    def record(self, source: str, losses: Iterable[Gap]) -> None:
        """Record losses of rows; they are durable on return."""
        self._call(source, "record", Record(source=source, losses=list(losses)), None)

    def _call(self, source: str, name: str, asked: Any, kind: Any) -> Any:
        return self._collectors.call(source, name, asked, kind, PATIENCE)


class RemoteHold:
    """A name that is held as long as a stream to each collector is open; after the loss of a link, it is held again."""

    def __init__(self, urls: list[str], name: str) -> None:
        self._urls = urls
        self._request = msgspec.json.encode(Hold(name=name, owner=Owner.here()))
        self._tasks: list[Any] = []
        self._refusals = dict.fromkeys(urls, 0)

    def begin(self) -> None:
        """Hold the name; `JournalLocked` if another process holds it."""
        for url in self._urls:
            held = threading.Event()
            task = links().submit(self._keep(url, held))
            self._tasks.append(task)
            task.add_done_callback(partial(_set, held))
            held.wait()
            if task.done():
                task.result()

    async def _keep(self, url: str, held: threading.Event) -> None:
        while True:
            try:
                await links().ask(url, lambda peer: self._held_by(peer, url, held), PATIENCE)
            except JournalLocked:
                if not held.is_set():
                    raise
                self._refused(url)
                await asyncio.sleep(AGAIN)
            except JournalError:
                # A collector that was there once is waited for.
                if not held.is_set():
                    raise

    def _refused(self, url: str) -> None:
        self._refusals[url] += 1
        if self._refusals[url] == REFUSALS:
            logger.warning("%s: another process has taken the reader's name while the network was down", url)

    async def _held_by(self, peer: Peer, url: str, held: threading.Event) -> None:
        async with peer.stream(f"{PREFIX}hold", self._request, credit=1) as stream:
            async for _ in stream:
                self._refusals[url] = 0
                held.set()
        # The collector closes: another one may be about to begin.
        await asyncio.sleep(0)

    def close(self) -> None:
        """Give the name back. May be called twice."""
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()


def _set(event: threading.Event, _: object) -> None:
    event.set()
