"""Handlers with something around them that sees the payloads of requests, also if the handler itself is typed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from ..payload import Payload

__all__ = ["Around", "Surrounding", "surround", "surrounding_of"]

ATTRIBUTE: Final = "__weirpool_surrounding__"

Around = Callable[[Callable[..., Any], Callable[[Payload], Any]], Callable[..., Any]]
"""Called with a handler of payloads, and a function that returns the answer to a request which is not passed to the
handler; returns another handler of payloads. It may pass the handler further arguments, after those of every one."""


@dataclass(frozen=True, slots=True)
class Surrounding:
    """What is around a handler."""

    handler: Callable[..., Any]
    """The handler, which may be typed."""
    around: Around


def surround(handler: Callable[..., Any], around: Around) -> Callable[..., Any]:
    """Return a handler of payloads, which a service can make a typed one of if `handler` is typed."""
    made: Any = around(handler, _nothing)
    made.__name__, made.__doc__ = getattr(handler, "__name__", repr(handler)), handler.__doc__
    setattr(made, ATTRIBUTE, Surrounding(handler, around))
    return made  # type: ignore[no-any-return]  # Any callable


def surrounding_of(function: Callable[..., Any]) -> Surrounding | None:
    """Return what is around a handler that :func:`surround` has returned; None for others."""
    found: Surrounding | None = getattr(function, ATTRIBUTE, None)
    return found


def _nothing(request: Payload) -> bytes:
    return b""
