"""Which clients may send rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..access.admission import require
from ..aio.setup import Setup

if TYPE_CHECKING:
    from .. import Bearer, Simple

__all__ = ["Admission"]


class Admission:
    """An acceptor of clients whose set-up has the right credentials.

    Args:
        credentials: What every client has to show.

    """

    def __init__(self, credentials: Simple | Bearer) -> None:
        self._check = require(credentials)

    def __call__(self, setup: Setup) -> None:
        """Admit a client, or raise `SetupRejected`."""
        self._check(setup)
