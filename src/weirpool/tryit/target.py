"""The server that people try: the connection to it, which is made again when it breaks, and its description."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import Enum
from typing import TYPE_CHECKING, Final

from ..errors import LocalError, WeirpoolError
from ..reflection.client import describe
from ..reflection.description import Description, NotDescribed

if TYPE_CHECKING:
    from ..aio.client import Connecting
    from ..aio.peer import Peer, RequestMetadata
    from ..aio.setup import ConnectionHook
    from ..connection import Connection

__all__ = ["State", "Target"]

DELAYS: Final = (0.5, 1.0, 2.0, 4.0)
"""Seconds between attempts to connect; the last one is repeated."""
DESCRIBE_SECONDS: Final = 5.0


class State(Enum):
    """Where the connection is."""

    CONNECTING = "connecting"
    CONNECTED = "connected"
    AWAY = "away"


class Target:
    """The server.

    Args:
        connect: Returns a new connection with a hook, which is not open yet.
        metadata: Metadata of requests.

    Attributes:
        state: As it is now.
        peer: The peer, while it is connected.
        problem: Why it is not connected; empty otherwise.
        description: What it offers, as it was last told; None if it does not tell.
        undescribed: Why it does not.
        changed: Called after each change of these.

    """

    def __init__(self, connect: Callable[[ConnectionHook], Connecting], metadata: RequestMetadata = None) -> None:
        self.state = State.CONNECTING
        self.peer: Peer | None = None
        self.problem = ""
        self.description: Description | None = None
        self.undescribed = ""
        self.changed: Callable[[], None] = _ignore
        self.metadata = metadata
        self._connect = connect

    async def run(self) -> None:
        """Connect, and connect again, until the task is canceled.

        Raises:
            LocalError: The options of the connection do not fit its URL.

        """
        attempt = 0
        while True:
            try:
                if await self._connected():
                    attempt = 0
            except LocalError:
                # Another attempt would fail in the same way.
                raise
            except WeirpoolError as error:
                self.problem = str(error)
            self.peer = None
            self._become(State.AWAY)
            await asyncio.sleep(DELAYS[min(attempt, len(DELAYS) - 1)])
            attempt += 1

    async def describe(self) -> None:
        """Ask the server for its description again."""
        if self.peer is None:
            return
        try:
            self.description = await describe(self.peer, metadata=self.metadata, timeout=DESCRIBE_SECONDS)
            self.undescribed = ""
        except NotDescribed as error:
            self.description, self.undescribed = None, str(error)

    async def _connected(self) -> bool:
        """Connect, and wait until the connection ends; return True if the server has answered."""
        ended: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

        @asynccontextmanager
        async def hook(connection: Connection) -> AsyncIterator[None]:
            try:
                yield
            finally:
                if not ended.done():
                    ended.set_result(connection.error)

        async with self._connect(hook) as peer:
            self.peer = peer
            await self.describe()
            self.problem = ""
            self._become(State.CONNECTED)
            error = await ended
            self.problem = "the server has closed the connection" if error is None else str(error)
        return True

    def _become(self, state: State) -> None:
        self.state = state
        self.changed()


def _ignore() -> None:
    """Do nothing."""
