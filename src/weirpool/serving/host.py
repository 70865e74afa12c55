"""Serves journals for as long as a collector runs: the server, and the files by which readers find it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Final

from ..access.exposure import check_exposure
from ..access.listening import server_tls, without_files
from ..aio.server import Server
from ..errors import LocalError
from .access import require_bytes
from .discovery import Announcements, address_of
from .door import TOKEN, Token, journal_server
from .journals import ServedJournals

__all__ = ["Host", "Listening", "check"]

RETRY_SECONDS: Final = 2.0
"""How often a journal is announced that could not be, or that another collector announced."""


@dataclass(frozen=True, kw_only=True)
class Listening:
    """Where a collector listens, and what its clients must show."""

    urls: tuple[str, ...]
    """The addresses."""
    cafile: str | None = None
    """A file of certificates; clients must show a certificate signed by one of them."""
    cert: str | None = None
    """A file with the server's certificate, for the addresses that name none."""
    key: str | None = None
    """A file with its key, if that is not in the same file."""
    token: Token | None = None
    """Returns the token that clients must show; None: they need not show any."""
    operator: Token | None = None
    """Returns the token of those who may also set and remove readers, and delete rows; None: nobody may."""
    address: str | None = None
    """The URL by which clients reach it, if that is not the first address."""
    allow_anonymous: bool = False
    """Clients of other machines need not show anything: anybody can read and trim the journals."""


def check(where: Listening) -> list[str]:
    """Return the URLs to listen on, with their certificates.

    Raises:
        LocalError: Something is not valid, a file cannot be read, or other machines can reach an address and nothing is
            asked of their clients.

    """
    if not where.urls:
        raise LocalError("there is no address to serve the journals at; give one")
    for url in where.urls:
        require_bytes(url)
    address_of(where.urls[0], where.address)
    urls = server_tls(where.urls, where.cafile, where.cert, where.key)
    for token in (where.token, where.operator):
        if token is not None and not token():
            raise LocalError("the token that clients must show is empty")
    remedy = f"a token in the variable {TOKEN} or"
    check_exposure(urls, authenticated=where.token is not None, allowed=where.allow_anonymous, remedy=remedy)
    return urls


class Host:
    """Serves journals while a block lasts: ``async with Host(folders, listening) as host``.

    Args:
        folders: The folder of each journal, by name.
        listening: Where to listen.

    Raises:
        LocalError: When entered: something in `listening` is not valid, or not safe.
        ConnectError: When entered: an address cannot be bound.

    """

    def __init__(self, folders: Mapping[str, str], listening: Listening) -> None:
        self._journals = ServedJournals(folders)
        self._listening = listening
        self._server: Server | None = None
        self._announcements: Announcements | None = None
        self._announcing: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    @property
    def journals(self) -> ServedJournals:
        """The journals that are served."""
        return self._journals

    @property
    def urls(self) -> list[str]:
        """The URLs that it listens on, as clients on this machine write them."""
        return [] if self._server is None else [without_files(url) for url in self._server.urls]

    def url(self, name: str) -> str:
        """Return the URL of a journal."""
        return "" if self._announcements is None else self._announcements.url(name)

    async def replace(self, folders: Mapping[str, str]) -> None:
        """Serve these journals from now on; see `ServedJournals.replace`."""
        await self._journals.replace(folders)
        self._changed.set()

    async def __aenter__(self) -> Host:
        where = self._listening
        self._server = await journal_server(self._journals, *check(where), token=where.token, operator=where.operator)
        self._announcements = Announcements(address_of(self._server.urls[0], where.address))
        self._announcing = asyncio.create_task(self._announce(self._announcements))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._server is not None and self._announcements is not None and self._announcing is not None
        self._announcing.cancel()
        await asyncio.gather(self._announcing, return_exceptions=True)
        await asyncio.to_thread(self._announcements.close)
        await self._server.close()

    async def _announce(self, announcements: Announcements) -> None:
        """Keep the files up to date. They are on the disks of journals, which must not hold the server up."""
        while True:
            self._changed.clear()
            await asyncio.to_thread(announcements.update, self._journals.folders)
            with suppress(TimeoutError):
                async with asyncio.timeout(RETRY_SECONDS):
                    await self._changed.wait()
