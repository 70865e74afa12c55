"""Which clients may send rows."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from ..aio.setup import Setup
from ..errors import SetupRejected

if TYPE_CHECKING:
    from .. import Bearer, Simple

__all__ = ["Admission"]


class Admission:
    """An acceptor of clients whose set-up has the right credentials.

    Args:
        credentials: What every client has to show.

    """

    def __init__(self, credentials: Simple | Bearer) -> None:
        self._wanted = _metadata(credentials)

    def __call__(self, setup: Setup) -> None:
        """Admit a client, or raise `SetupRejected`."""
        from .. import Bearer, FrameError, Metadata, Simple

        try:
            shown = Metadata.decode(setup.payload.metadata).auth
        except FrameError:
            shown = None
        if not isinstance(shown, Simple | Bearer) or not hmac.compare_digest(_metadata(shown), self._wanted):
            raise SetupRejected("the credentials in the set-up are missing or wrong")


def _metadata(credentials: Simple | Bearer) -> bytes:
    from .. import Metadata

    return Metadata(auth=credentials).encode()
