"""Where a request carries the context of a trace from one side to the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ..aio.handlers import Request
from ..protocols import carriers
from ..river.tracing import RiverCarrier
from ..rsocket.extensions.carrier import CompositeCarrier

__all__ = ["AnyCarrier", "Carrier", "CompositeCarrier", "RiverCarrier"]


class Carrier(Protocol):
    """Writes the fields of a text map propagator into a request, and reads them there."""

    def write(self, request: Request, fields: Mapping[str, str]) -> None:
        """Put `fields` into a request that is about to be sent."""

    def read(self, request: Request) -> Mapping[str, str]:
        """Return the fields of a request that came; none where there are none, or they are no such fields."""


class AnyCarrier:
    """Carries each request's fields as its protocol can.

    Args:
        some: Of one protocol each; none at all: those of all protocols.

    """

    def __init__(self, *some: Carrier) -> None:
        self._carriers: Sequence[Carrier] = some or carriers()

    def write(self, request: Request, fields: Mapping[str, str]) -> None:
        """Put `fields` into a request that is about to be sent."""
        for carrier in self._carriers:
            carrier.write(request, fields)

    def read(self, request: Request) -> dict[str, str]:
        """Return the fields of a request that came."""
        return {name: value for carrier in self._carriers for name, value in carrier.read(request).items()}
