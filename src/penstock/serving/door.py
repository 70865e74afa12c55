"""The server of a collector: whom it admits."""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
from collections.abc import Callable
from typing import Final

from ..access.references import resolved
from ..aio.server import Server, serve
from ..aio.service import Service
from ..aio.setup import Admitted, Setup
from ..errors import LocalError, PenstockError, SetupRejected
from ..settings import Settings
from ..urls import fitting
from .journals import ServedJournals

__all__ = ["TOKEN", "Token", "environment_token", "journal_server"]

logger = logging.getLogger("penstock.serving")

TOKEN: Final = "PENSTOCK_SERVE_TOKEN"
"""The environment variable with the token that clients must show."""
SETTINGS: Final = Settings(close_grace=1.0)
"""Readers follow a journal without an end, and continue elsewhere where they were cut off."""

Token = Callable[[], str]
"""Returns the token that clients must show. It may read a file; `LocalError` if it cannot."""


def environment_token() -> Token | None:
    """Return the token that the environment names; None if it names none."""
    return (lambda: resolved(f"env:{TOKEN}")) if os.environ.get(TOKEN) else None


def journal_server(journals: ServedJournals, *urls: str, token: Token | None = None) -> Server:
    """Return a server for journals, to be entered or awaited like that of :func:`penstock.serve`.

    Args:
        journals: The journals.
        urls: The addresses to listen on.
        token: Returns the token that clients must show, for each of them anew; None: they need not show any.

    """

    async def accept(setup: Setup) -> Admitted:
        if token is not None and not _shows(setup, await asyncio.to_thread(_current, token)):
            raise SetupRejected("no valid token")
        return journals.admit(setup.payload.data)

    settings = fitting(SETTINGS, *urls, serving=True)
    return serve(Service(), *urls, settings=settings, acceptor=accept, on_connection=journals.connected)


def _current(token: Token) -> str:
    """Return the token as it is now; empty, which nobody can show, if it cannot be read."""
    try:
        return token()
    except LocalError as error:
        logger.error("no reader is admitted, because there is no token: %s", error)
        return ""


def _shows(setup: Setup, token: str) -> bool:
    """Return True if a client has shown the token."""
    from .. import Bearer, Metadata

    try:
        shown = Metadata.decode(setup.payload.metadata).auth
    except PenstockError:
        return False
    return isinstance(shown, Bearer) and token != "" and hmac.compare_digest(shown.token.encode(), token.encode())
