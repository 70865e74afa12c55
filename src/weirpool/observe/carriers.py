"""Carriers: where a request transports the context of a trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ..aio.handlers import Request
from ..protocols import carriers

__all__ = ["AnyCarrier", "Carrier"]


class Carrier(Protocol):
    """Writes the fields of a text map propagator to a request, and reads them from it."""

    def write(self, request: Request, fields: Mapping[str, str]) -> None:
        """Add `fields` to a request before it is sent."""

    def read(self, request: Request) -> Mapping[str, str]:
        """Return the fields of a received request; none if it has no valid fields."""


class AnyCarrier:
    """Carries the fields of a request as its protocol defines.

    Args:
        some: Carriers of one protocol each; those of all protocols by default.

    """

    def __init__(self, *some: Carrier) -> None:
        self._carriers: Sequence[Carrier] = some or carriers()

    def write(self, request: Request, fields: Mapping[str, str]) -> None:
        """Add `fields` to a request before it is sent."""
        for carrier in self._carriers:
            carrier.write(request, fields)

    def read(self, request: Request) -> dict[str, str]:
        """Return the fields of a received request."""
        return {name: value for carrier in self._carriers for name, value in carrier.read(request).items()}
