"""The kinds of routes, which not all protocols tell with a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..kinds import ANY, Kind

__all__ = ["RouteKinds"]

MAX_LEARNED: Final = 10_000
"""Routes whose kind is remembered: more than services have, and a limit for hostile clients."""


class RouteKinds:
    """The kinds of routes, as far as they are known.

    Args:
        given: Kinds that the user has declared.

    """

    def __init__(self, given: Mapping[str, Kind]) -> None:
        self._given = dict(given)
        # The calls among the routes that were requested as streams.
        self._calls: dict[str, None] = {}

    def kind_of(self, route: str) -> int:
        """Return the kind of a route; ANY if each request decides."""
        return self._given.get(route, ANY)

    def is_call(self, route: str) -> bool:
        """Return whether a request for `route` is a call, although its protocol cannot tell it from a stream."""
        return self._given.get(route) is Kind.CALL or route in self._calls

    def learn_call(self, route: str) -> None:
        """Remember that a route is one of a call."""
        if len(self._calls) >= MAX_LEARNED:
            del self._calls[next(iter(self._calls))]
        self._calls[route] = None

    def may_be_call(self, route: str) -> bool:
        """Return whether nothing is known about a route."""
        return route not in self._given
