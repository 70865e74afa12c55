"""How a client's session begins."""

from __future__ import annotations

from ..session import ClientStart
from .dialect import DIALECTS, RSOCKET_1_0
from .session import RSocketSession

__all__ = ["client"]


def client(start: ClientStart) -> RSocketSession:
    """Return a client's session. See :func:`weirpool.protocols.client_session`."""
    settings = start.settings
    checkpoint = start.checkpoint_with_secret()
    dialect = DIALECTS.get(start.protocol, RSOCKET_1_0)
    if start.messages:
        dialect = dialect.over_messages()
    elif settings.length_counts_itself:
        dialect = dialect.counting_itself()
    if checkpoint is not None:
        return RSocketSession.restore(settings, checkpoint, start.secret, dialect)
    return RSocketSession.client(settings, start.setup, dialect, start.random if settings.resume else None)
