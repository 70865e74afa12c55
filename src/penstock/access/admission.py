"""Who may connect with a shared secret."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import FrameError, SetupRejected

if TYPE_CHECKING:
    from .. import Bearer, Setup, Simple

__all__ = ["require"]


def require(credentials: Bearer | Simple) -> Callable[[Setup], None]:
    """Return an acceptor that admits a client if its set-up shows these credentials, and otherwise rejects it.

    They are compared in constant time. Malformed metadata shows none, and nobody shows an empty token.
    """
    from .. import Bearer, Metadata, Simple

    wanted = Metadata(auth=credentials).encode()
    usable = credentials != Bearer("")

    def accept(setup: Setup) -> None:
        try:
            shown = Metadata.decode(setup.payload.metadata).auth
        except FrameError:
            shown = None
        same = isinstance(shown, Bearer | Simple) and hmac.compare_digest(Metadata(auth=shown).encode(), wanted)
        if not (same and usable):
            raise SetupRejected("the credentials in the set-up are missing or wrong")

    return accept
