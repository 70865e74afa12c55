"""A service that answers with values of its schema."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from ..aio.items import Items
from ..aio.service import Service
from ..aio.setup import current_connection
from ..errors import ApplicationError
from ..kinds import Kind
from ..payload import Payload
from ..schema.formats import JSON, format_of
from ..schema.named import RESERVED
from .values import Values

__all__ = ["MockOptions", "mock_service"]

CODE: Final = 0x301
"""The code of made-up errors, if the schema has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MockOptions:
    """How a mock answers.

    Attributes:
        seed: The same seed gives the same values.
        rate: Items per second of each stream; None: as fast as clients take them.
        items: Items of each stream; None: it does not end.
        errors: The part of requests that fail, from 0 to 1.
        latency: Seconds before the first item of each response.

    """

    seed: int = 0
    rate: float | None = 10.0
    items: int | None = None
    errors: float = 0.0
    latency: float = 0.0


def mock_service(procedures: Mapping[str, tuple[Kind, dict[str, Any]]], options: MockOptions) -> Service:
    """Return a service with a handler for each route.

    Args:
        procedures: By route: the kind, and the procedure of an exported schema.
        options: How it answers.

    Raises:
        LocalError: A schema is not valid, or no value of it can be made up.

    """
    service = Service()
    for route, (kind, procedure) in procedures.items():
        handler = _Mocked(route, procedure, options)
        if kind is Kind.FIRE:
            service.fire(route)(lambda request: None)
            continue
        # Mistakes of the schema are found now.
        handler.value(0)
        register: Any = getattr(service, kind.name.lower())
        register(route)(getattr(handler, kind.name.lower()))
    return service


class _Mocked:
    """The handlers of one route."""

    def __init__(self, route: str, procedure: dict[str, Any], options: MockOptions) -> None:
        self._route = route
        self._values = Values(procedure.get("output", {}))
        self._codes = _codes(procedure)
        self._options = options
        self._requests = count()

    def value(self, number: int) -> Any:
        """Return the value with a number."""
        return self._values.make(f"{self._options.seed}/{self._route}/{number}")

    async def call(self, request: Payload) -> bytes:
        """Answer a call."""
        number = await self._begin()
        return _encoded(self.value(number))

    async def stream(self, request: Payload) -> AsyncIterator[bytes]:
        """Answer a stream."""
        first = await self._begin()
        clock = asyncio.get_running_loop().time
        rate, limit = self._options.rate, self._options.items
        due = clock()
        for number in count():
            if number == limit:
                return
            yield _encoded(self.value(first + number))
            if rate is not None:
                # A client that was slow does not get what it has missed at once.
                due = max(due + 1 / rate, clock() - 1 / rate)
                await asyncio.sleep(max(due - clock(), 0))

    async def upload(self, request: Payload, items: Items) -> bytes:
        """Answer an upload after its last item."""
        async for _ in items:
            pass
        return await self.call(request)

    async def channel(self, request: Payload, items: Items) -> AsyncIterator[bytes]:
        """Answer each item of a channel with one."""
        first = await self._begin()
        numbers = count(first)
        async for _ in items:
            yield _encoded(self.value(next(numbers)))

    async def _begin(self) -> int:
        """Wait, and fail if it is this request's lot; return its number."""
        number = next(self._requests)
        if self._options.latency:
            await asyncio.sleep(self._options.latency)
        lot = random.Random(f"{self._options.seed}/{self._route}/{number}/error")
        if lot.random() < self._options.errors:
            code = lot.choice(self._codes) if self._codes else CODE
            raise ApplicationError(code, f"made up by the mock of {self._route}")
        return number


def _encoded(value: Any) -> bytes:
    """Return a value in the encoding of the connection; JSON if it has none."""
    return (format_of(current_connection().data_mime) or JSON).encode(value)


def _codes(procedure: dict[str, Any]) -> list[str]:
    """Return the codes of the errors that a procedure declares for itself."""
    errors = procedure.get("errors")
    some = errors.get("anyOf", [errors]) if isinstance(errors, dict) else []
    found = []
    for each in some:
        code = each.get("properties", {}).get("code", {}).get("const") if isinstance(each, dict) else None
        if isinstance(code, str) and code not in RESERVED:
            found.append(code)
    return found
