"""A large response that waits until the link accepts output: many at once must not look like an idle peer."""

from __future__ import annotations

import asyncio

from ..errors import LocalError, StreamClosed
from ..kinds import Kind
from ..payload import Payload
from .exchanges import Exchanges
from .handlers import Handler

__all__ = ["LateAnswer"]


class LateAnswer:
    """The sending half of a call or an upload whose handler has ended.

    Args:
        exchanges: The streams of the connection.
        stream_id: The stream of the call.
        payload: The response.
        handler: What has returned it.

    Attributes:
        stream_id: The stream.
        held: The size of the response. It counts as long as it waits.

    """

    __slots__ = ("_exchanges", "_handler", "_payload", "held", "stream_id")

    def __init__(self, exchanges: Exchanges, stream_id: int, payload: Payload, handler: Handler) -> None:
        self._exchanges = exchanges
        self.stream_id = stream_id
        self._handler = handler
        self._payload: Payload | None = payload
        self.held = len(payload.data)
        exchanges.flow.account.book(self.held)
        self._wait()

    def granted(self) -> None:
        """Do nothing: the request included the demand for the item."""

    def canceled(self, metadata: bytes | None = None) -> None:
        """Drop the response. The half is no longer in the table."""
        self._payload = None
        self._exchanges.flow.account.release(self.held)
        self.held = 0

    def _wait(self) -> None:
        self._exchanges.flow.writable().add_done_callback(self._writable)

    def _writable(self, waiter: asyncio.Future[None]) -> None:
        """Send the response, unless another one has filled the link again."""
        payload, exchanges, stream_id = self._payload, self._exchanges, self.stream_id
        if payload is None:
            return
        if exchanges.flow.paused:
            self._wait()
            return
        try:
            exchanges.session.send(stream_id, payload, True)
        except StreamClosed:
            pass
        except LocalError as error:
            exchanges.fail(stream_id, error, self._handler.name)
        else:
            exchanges.flow.schedule_write(len(payload.data))
        if self._handler.kind is Kind.UPLOAD:
            exchanges.release(stream_id)
        exchanges.half_ended(self, stream_id, self._handler.name)
