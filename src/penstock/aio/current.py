"""The connection for which a handler runs."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from ..connection import Connection
from ..errors import LocalError

__all__ = ["CURRENT", "current_connection"]

CURRENT: Final[ContextVar[Connection]] = ContextVar("penstock.current_connection")
"""Set while events of a connection that is watched are handed out; tasks that begin then inherit it."""


def current_connection() -> Connection:
    """Return the connection for which the handler that calls this runs.

    It is known where a server has an acceptor, taps, a connection hook, interceptors or typed handlers.

    Raises:
        LocalError: It is called by no handler, or nobody watches the connection.

    """
    connection = CURRENT.get(None)
    if connection is None:
        raise LocalError("no connection is known here: call this in a handler, of a server that has an acceptor")
    return connection
