"""A service that answers every route."""

from __future__ import annotations

from collections.abc import Callable

from ..aio.handlers import Interceptor
from ..aio.service import Service

__all__ = ["AnyRoute"]


class AnyRoute(Service):
    """Answers all requests by an interceptor, which never calls the next one.

    It requests the items that follow a request as the other side requests them.

    Args:
        kind_of: Returns the kind of a route; `ANY` if each request decides.
        answer: The interceptor.

    """

    by_demand = True

    def __init__(self, kind_of: Callable[[str], int], answer: Interceptor) -> None:
        super().__init__(interceptors=[answer])
        self._kind_of = kind_of

    def kind_of(self, route: str) -> int | None:
        """Return the kind of a route, for protocols whose requests do not have a kind."""
        return self._kind_of(route)
