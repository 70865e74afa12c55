"""Errors between the items of a stream that this side opens, which are reported as items."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable

from ..errors import ApplicationError, UnsupportedKind
from ..item_errors import ItemErrors
from ..payload import Payload
from ..session import Session
from .exchanges import Exchanges
from .handlers import close_items

__all__ = ["ReportedErrors"]


class ReportedErrors:
    """The errors between the items of one stream. Only River has them."""

    __slots__ = ("_errors",)

    def __init__(self) -> None:
        self._errors: ItemErrors | None = None

    def check(self, session: Session) -> ItemErrors:
        """Return how a session tells errors from values.

        Raises:
            UnsupportedKind: Its protocol has no errors between items.

        """
        if session.item_errors is None:
            raise UnsupportedKind("this protocol has no errors between items; leave out results=True, or with_errors()")
        return session.item_errors

    def begin(self, exchanges: Exchanges, stream_id: int) -> None:
        """Report the errors of a stream that was opened.

        Raises:
            UnsupportedKind: A balancer has opened it at a server whose protocol has none. It is canceled.

        """
        try:
            self._errors = self.check(exchanges.session)
        except UnsupportedKind:
            exchanges.cancel_stream(stream_id)
            raise
        self._errors.report(stream_id)

    def of(self, payload: Payload) -> Payload | ApplicationError:
        """Return an item of the stream, or the error that it is."""
        if self._errors is None or payload.metadata is None:
            return payload
        return self._errors.error_of(payload) or payload

    async def items(self, stream: AsyncIterable[Payload]) -> AsyncGenerator[Payload | ApplicationError, None]:
        """Yield the items of the stream, and the errors between them."""
        payloads = aiter(stream)
        try:
            async for payload in payloads:
                yield self.of(payload)
        finally:
            await close_items(payloads)
