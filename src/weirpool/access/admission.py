"""Who may connect with a shared secret."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import FrameError, SetupRejected

if TYPE_CHECKING:
    from .. import Bearer, Setup, Simple

__all__ = ["require", "shows"]


def require(credentials: Bearer | Simple) -> Callable[[Setup], None]:
    """Return an acceptor that admits a client if its set-up shows these credentials, and otherwise rejects it.

    Raises:
        LocalError: No client can show them.

    """
    from .. import Metadata

    Metadata(auth=credentials).encode()

    def accept(setup: Setup) -> None:
        if not shows(setup, credentials):
            raise SetupRejected("the credentials in the set-up are missing or wrong")

    return accept


def shows(setup: Setup, credentials: Bearer | Simple) -> bool:
    """Return True if the set-up of a client shows these credentials.

    They are compared in constant time. Malformed metadata shows none, and nobody shows an empty token.
    """
    from .. import Bearer, Metadata, Simple

    try:
        shown = Metadata.decode(setup.payload.metadata).auth
    except FrameError:
        return False
    return (
        isinstance(shown, Bearer | Simple)
        and credentials != Bearer("")
        and hmac.compare_digest(Metadata(auth=shown).encode(), Metadata(auth=credentials).encode())
    )
