"""Service handlers that return publishers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import wraps
from inspect import isawaitable
from typing import Any, TypeVar, overload

from ..errors import LocalError
from .interfaces import Publisher
from .iteration import to_aiter

__all__ = ["publishing"]

H = TypeVar("H", bound=Callable[..., Any])


@overload
def publishing(handler: H, /) -> H: ...
@overload
def publishing(*, window: int) -> Callable[[H], H]: ...
def publishing(handler: H | None = None, /, *, window: int = 1) -> H | Callable[[H], H]:
    """Let a handler of a stream or channel return a :class:`~weirpool.reactive.Publisher`.

    Write it below the decorator of the service::

        @service.stream("ticks")
        @publishing
        def ticks(request: Payload) -> Publisher[bytes]: ...

    The publisher is subscribed when the request arrives, and canceled when the requester cancels.

    Args:
        handler: Returns the publisher, or is a coroutine function that does.
        window: Items to request from it ahead of the requester's demand.

    """
    if handler is None:
        return lambda handler: _publishing(handler, window)
    return _publishing(handler, window)


def _publishing(handler: H, window: int) -> H:
    if window < 1:
        raise LocalError(f"the window is {window}; a publisher is asked for at least 1 item")

    @wraps(handler)
    def answer(*arguments: Any) -> AsyncIterator[Any] | Awaitable[AsyncIterator[Any]]:
        result = handler(*arguments)
        if isawaitable(result):
            return _later(result, window)
        return _items(result, window)

    return answer  # type: ignore[return-value]


async def _later(result: Awaitable[Publisher[Any]], window: int) -> AsyncIterator[Any]:
    return _items(await result, window)


def _items(publisher: Publisher[Any], window: int) -> AsyncIterator[Any]:
    if not hasattr(publisher, "subscribe"):
        raise LocalError(f"a handler that is @publishing returns a Publisher, not {type(publisher).__name__}")
    return to_aiter(publisher, window)
