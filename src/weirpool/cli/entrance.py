"""Who may connect to a verb that listens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from typer import Option

from ..access.exposure import ALLOWED, check_exposure
from ..settings import DEFAULT_SETTINGS
from .connect_options import check_composite
from .credentials import credentials

if TYPE_CHECKING:
    from ..aio.setup import Acceptor

__all__ = ["AllowAnonymous", "entrance"]

AllowAnonymous = Annotated[
    bool, Option(ALLOWED, help="Listen where other machines can connect, although clients need no credentials.")
]


def entrance(urls: Sequence[str], auth: str | None, allow_anonymous: bool) -> Acceptor | None:
    """Check who can connect to a server, and return its acceptor; None if clients need no credentials in their set-up.

    Args:
        urls: The addresses to listen on; encrypted ones name their files.
        auth: What every client must show, as for `credentials`.
        allow_anonymous: Whether clients of other machines need nothing.

    Raises:
        LocalError: Anybody could connect from another machine; or a protocol has no place for credentials.

    """
    if auth is not None:
        for url in urls:
            check_composite(url, DEFAULT_SETTINGS, "--auth needs")
    check_exposure(urls, authenticated=auth is not None, allowed=allow_anonymous, remedy="--auth or")
    if auth is None:
        return None
    from ..receiving.admission import Admission

    return Admission(credentials(auth))
