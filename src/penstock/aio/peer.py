"""The other side of a connection, as this side's users see it."""

from __future__ import annotations

from asyncio import CancelledError
from typing import Any

from ..errors import LeaseMissing, SessionClosed
from ..kinds import Kind
from ..payload import Payload
from .asking import Asking
from .driver import Driver
from .pump import Source, pump
from .streams import Stream, Wanted

__all__ = ["Peer"]

# Members of an enumeration cost a look-up each time.
_FIRE = Kind.FIRE


class Peer(Asking):
    """Asks the other side of a connection for things. :func:`penstock.connect` makes one."""

    __slots__ = ("_driver",)

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def __repr__(self) -> str:
        return f"<Peer {self._driver.name}{', closed' if self.closed else ''}>"

    @property
    def closed(self) -> bool:
        """Whether the connection is closed for good."""
        return self._driver.closed

    @property
    def outstanding(self) -> int:
        """How many streams are open, calls included, of both sides."""
        return self._driver.session.open_streams

    @property
    def data_mime(self) -> str:
        """What the data of the connection is."""
        return self._driver.settings.data_mime

    async def push(self, metadata: bytes) -> None:
        """Send metadata that belongs to the connection as a whole. See :meth:`Asking.push`."""
        driver = self._driver
        if driver.paused:
            await driver.writable()
        driver.session.push(metadata)
        driver.wake()

    async def close(self, grace: float | None = None) -> None:
        """Close the connection, once what is open has ended, or `grace` seconds later. See :meth:`Asking.close`."""
        await self._driver.close(grace)

    def reset_budget(self) -> None:
        """Let River connect again when its retry budget is used up.

        It has five tries in a row, of which one is given back for each 200 ms that a connection holds. While it is used
        up, what is asked for fails with a :exc:`~penstock.ConnectError`. Where there is no budget, nothing happens.
        """

    # For the collector, which resumes sessions across processes.

    @property
    def secret(self) -> bytes:
        """What another process needs, beside a checkpoint, to resume this session; see `Session.secret`."""
        return self._driver.session.secret

    def checkpoint(self, stream: Stream, count: int) -> bytes | None:
        """Return what another process needs to resume this session; see `Session.checkpoint`.

        Args:
            stream: The stream of which :meth:`commit` will ask for more.
            count: How many items.

        """
        return self._driver.session.checkpoint(stream.stream_id, count)

    def commit(self) -> None:
        """Tell the peer that all the last checkpoint covers is safe; see `Session.commit`."""
        self._driver.session.commit()
        self._driver.wake()

    def detach(self) -> None:
        """Let go of the connection without ending the session, which the peer keeps for whoever resumes it."""
        self._driver.detach()

    def adopt(self) -> Stream | None:
        """Return the next stream that the session had open at its checkpoint; None when there are no more.

        All that has arrived since the session was resumed is in it, and so is its end, if that has come.
        """
        restored = self._driver.restored
        return Stream.adopted(restored.pop(0)) if restored else None

    # What is asked for.

    async def ready(self) -> Driver:
        """Return the driver of the connection once it takes output; to be used at once."""
        if self._driver.paused:
            await self._driver.writable()
        return self._driver

    async def _ask(self, kind: Kind, route: str, payload: Payload, routed: bool, outgoing: Source | None) -> Any:
        driver = self._driver
        if routed:
            route = ""
        if driver.paused or (driver.lasting and not driver.usable):
            driver = await self.ready()
        try:
            stream_id = driver.session.open(kind, route, payload, 1)
        except SessionClosed as error:
            raise self._closed(error) from None
        except LeaseMissing:
            stream_id = await self._leased(kind, route, payload)
        if kind is _FIRE:
            driver.wake()
            return None
        future = driver.loop.create_future()
        driver.calls[stream_id] = future
        if outgoing is not None:
            pump(driver, stream_id, 0, outgoing)
        driver.wake()
        try:
            return await future
        except CancelledError:
            driver.abandon(stream_id)
            raise
        finally:
            if outgoing is not None:
                driver.leave(stream_id)

    def _stream(self, wanted: Wanted) -> Stream:
        return Stream(self._driver, wanted)

    async def _leased(self, kind: Kind, route: str, payload: Payload) -> int:
        """Open a stream once there is leave for it."""
        try:
            return await self._driver.lessees.open(kind, route, payload, 1)
        except SessionClosed as error:
            raise self._closed(error) from None

    def _closed(self, error: SessionClosed) -> Exception:
        """Return why nothing can be opened any more."""
        return self._driver.error or error
