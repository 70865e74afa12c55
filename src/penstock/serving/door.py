"""The server of a collector: which addresses it may listen on, and whom it admits."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
from collections.abc import Callable, Iterable
from typing import Final

from ..access.admission import require, shows
from ..access.listening import ENCRYPTED
from ..access.references import resolved
from ..aio.server import Server, serve
from ..aio.service import Service
from ..aio.setup import Admitted, Setup
from ..errors import LocalError
from ..settings import Settings
from ..urls import Url, fitting, parse_url
from .journals import ServedJournals

__all__ = ["OPERATOR_TOKEN", "TOKEN", "Token", "check_exposure", "environment_token", "is_local", "journal_server"]

logger = logging.getLogger("penstock.serving")

TOKEN: Final = "PENSTOCK_SERVE_TOKEN"
"""The environment variable with the token that clients must show."""
OPERATOR_TOKEN: Final = "PENSTOCK_SERVE_OPERATOR_TOKEN"
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
    """Return a server for journals, to be entered or awaited like that of :func:`penstock.serve`.

    Args:
        journals: The journals.
        urls: The addresses to listen on.
        token: Returns the token that clients must show, for each of them anew; None: they need not show any.
        operator: Returns the token of those who may also set and remove readers, and delete rows; None: nobody may.

    Raises:
        LocalError: An address can be reached from other machines, and nothing is asked of their clients.

    """
    from .. import Bearer

    check_exposure(urls, token)

    async def accept(setup: Setup) -> Admitted:
        if operator is not None and shows(setup, Bearer(await asyncio.to_thread(_current, operator))):
            return journals.admit(setup.payload.data, operator=True)
        if token is not None:
            require(Bearer(await asyncio.to_thread(_current, token)))(setup)
        return journals.admit(setup.payload.data)

    settings = fitting(SETTINGS, *urls, serving=True)
    return serve(Service(), *urls, settings=settings, acceptor=accept, on_connection=journals.connected)


def check_exposure(urls: Iterable[str], token: object) -> None:
    """Check that whoever can read and trim a journal from another machine must prove something."""
    for text in urls:
        url = parse_url(text)
        if is_local(url):
            continue
        asks_for_certificates = "ca" in url.options and url.transport in ENCRYPTED
        if token is None and not asks_for_certificates:
            raise LocalError(
                f"{text}: other machines could read and trim this journal; set the variable {TOKEN} to a token that "
                "clients must show, or require client certificates with +tls://…?cert=FILE&key=FILE&ca=FILE"
            )
        if url.transport not in ENCRYPTED:
            logger.warning("%s is not encrypted: the token and all rows can be read on the network; use +tls", text)


def is_local(url: Url) -> bool:
    """Return True if only processes of this machine can connect."""
    if url.port is None or url.host == "localhost":
        return True
    try:
        return ipaddress.ip_address(url.host).is_loopback
    except ValueError:
        return False


def _current(token: Token) -> str:
    """Return the token as it is now; empty, which nobody can show, if it cannot be read."""
    try:
        return token()
    except LocalError as error:
        logger.error("no reader is admitted, because there is no token: %s", error)
        return ""
