"""How a session has ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import ApplicationError, SessionError

__all__ = ["session_errors"]


@contextmanager
def session_errors() -> Iterator[None]:
    """Raise the error of the session, if the protocol has failed its streams with a code instead."""
    try:
        yield
    except ApplicationError as error:
        if isinstance(error.__cause__, SessionError):
            raise error.__cause__ from None
        raise
