"""The server of a collector: whom it admits."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Final

from ..access.admission import require, shows
from ..access.references import resolved
from ..aio.server import Server, serve
from ..aio.service import Service
from ..aio.setup import Admitted, Setup
from ..errors import LocalError
from ..settings import Settings
from ..urls import fitting
from .journals import ServedJournals

__all__ = ["OPERATOR_TOKEN", "TOKEN", "Token", "environment_token", "journal_server"]

logger = logging.getLogger("weirpool.serving")

TOKEN: Final = "WEIRPOOL_SERVE_TOKEN"
"""The environment variable with the token that clients must show."""
OPERATOR_TOKEN: Final = "WEIRPOOL_SERVE_OPERATOR_TOKEN"
"""The same for those who may also set and remove readers, and delete rows."""
SETTINGS: Final = Settings(close_grace=1.0)
"""Readers follow a journal without an end, and continue elsewhere where they were cut off."""

Token = Callable[[], str]
"""Returns the token that clients must show. It may read a file; `LocalError` if it cannot."""


def environment_token(name: str = TOKEN) -> Token | None:
    """Return the token in a variable of the environment; None if there is none."""
    return (lambda: resolved(f"env:{name}")) if os.environ.get(name) else None


def journal_server(
    journals: ServedJournals, *urls: str, token: Token | None = None, operator: Token | None = None
) -> Server:
    """Return a server for journals, to be entered or awaited like that of :func:`weirpool.serve`.

    Args:
        journals: The journals.
        urls: The addresses to listen on.
        token: Returns the token that clients must show, for each of them anew; None: they need not show any.
        operator: Returns the token of those who may also set and remove readers, and delete rows; None: nobody may.

    """
    from .. import Bearer

    async def accept(setup: Setup) -> Admitted:
        # A token in a file is read from a disk: clients wait for their turns, as for all that is read for them.
        if operator is not None and shows(setup, Bearer(await journals.in_thread(setup.address, _current, operator))):
            return journals.admit(setup.payload.data, operator=True)
        if token is not None:
            require(Bearer(await journals.in_thread(setup.address, _current, token)))(setup)
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
