"""The items that follow a request. They are not read before the peer requests them."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, copy_context
from functools import partial
from inspect import isawaitable
from typing import Final

from .exchanges import Exchanges
from .pump import pump
from .sources import Source

__all__ = ["DEMAND", "Outgoing"]

DEMAND: Final[ContextVar[Callable[[], int] | None]] = ContextVar("weirpool.demand", default=None)
"""Set while a source runs: returns how many items the peer has requested that were not sent."""


class Outgoing:
    """The sending half of an upload or a channel until the peer requests items. Then a pump takes its place.

    A peer that refuses the request has not requested any, so the source can be sent on another stream.

    Args:
        source: What `check_source` accepts. It runs in a copy of the context of this call.

    Attributes:
        stream_id: The stream; 0 before the request is sent.
        held: 0: nothing of the peer's is held.

    """

    __slots__ = ("_context", "_exchanges", "_read", "_source", "held", "stream_id")

    def __init__(self, source: Source) -> None:
        self._source = source
        self._context = copy_context()
        self._read = False
        self._exchanges: Exchanges
        self.stream_id = 0
        self.held = 0

    @property
    def repeatable(self) -> bool:
        """True if all items can be sent on another stream: the source was not read, or it can be read again."""
        return not self._read or isinstance(self._source, list | tuple)

    def begin(self, exchanges: Exchanges, stream_id: int) -> None:
        """Become the sending half of a stream that was opened."""
        self._exchanges = exchanges
        self.stream_id = stream_id
        exchanges.outbound[stream_id] = self
        if isawaitable(self._source) or exchanges.session.credit(stream_id) > 0:
            # A result may take long, and a coroutine that is never awaited is a mistake. Without the peer's credit, as
            # in River, a source starts before the request is written, so that no response overtakes its early failure.
            self._start(0)

    def granted(self) -> None:
        """Read the source, because the peer requested items."""
        credit = self._exchanges.session.credit(self.stream_id)
        if credit > 0:
            self._start(credit)

    def canceled(self, metadata: bytes | None = None) -> None:
        """Do nothing: the source was not read, and may be needed again."""

    def _start(self, credit: int) -> None:
        self._read = True
        self._context.run(DEMAND.set, partial(self._exchanges.session.credit, self.stream_id))
        pump(self._exchanges, self.stream_id, credit, self._source, context=self._context)
