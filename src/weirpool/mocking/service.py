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
from ..schema.budget import Budget
from ..schema.formats import JSON, format_of
from ..schema.named import is_code
from ..schema.wellformed import WellFormed
from .values import Values

__all__ = ["MockOptions", "mock_service"]

CODE: Final = 0x301
"""The code of made-up errors, if the schema has none."""
MAX_VALUES: Final = 100_000
"""Values of the first responses of all routes, which are made before any is served."""


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
    reader, budget = WellFormed(), Budget(MAX_VALUES, "the first value of each route")
    for route, (kind, procedure) in procedures.items():
        if kind is Kind.FIRE:
            service.fire(route)(lambda request: None)
            continue
        schema = procedure.get("output", {})
        # Mistakes of the schema are found now.
        Values(schema, reader, budget).make(_seed(options, route, 0))
        handler = _Mocked(route, Values(schema, reader), _codes(procedure), options)
        register: Any = getattr(service, kind.name.lower())
        register(route)(getattr(handler, kind.name.lower()))
    return service


class _Mocked:
    """The handlers of one route."""

    def __init__(self, route: str, values: Values, codes: list[str], options: MockOptions) -> None:
        self._route = route
        self._values = values
        self._codes = codes
        self._options = options
        self._requests = count()

    def value(self, number: int) -> Any:
        """Return the value with a number."""
        return self._values.make(_seed(self._options, self._route, number))

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


def _seed(options: MockOptions, route: str, number: int) -> str:
    return f"{options.seed}/{route}/{number}"


def _encoded(value: Any) -> bytes:
    """Return a value in the encoding of the connection; JSON if it has none."""
    return (format_of(current_connection().data_mime) or JSON).encode(value)


def _codes(procedure: dict[str, Any]) -> list[str]:
    """Return the codes of the errors that a procedure declares for itself."""
    errors = _inside(procedure, "errors")
    several = errors.get("anyOf", [errors])
    found = []
    for each in several if isinstance(several, list) else ():
        code = _inside(_inside(each, "properties"), "code").get("const")
        if isinstance(code, str) and is_code(code):
            found.append(code)
    return found


def _inside(value: Any, key: str) -> dict[str, Any]:
    """Return the object under a key; an empty one if there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}
