"""Errors between the items of a stream, which do not end it. River, Reader and Writer Semantics."""

from __future__ import annotations

from msgspec import Raw

from ..errors import ApplicationError, LocalError
from ..payload import Payload
from ..wire.river.codec import CANCEL, RiverCodec
from .codes import ITEM_ERROR, error_of, failure_of
from .streams import RiverStreams

__all__ = ["RiverItemErrors"]


class RiverItemErrors:
    """Sends and reads errors between items. See :class:`weirpool.session.ItemErrors`.

    Args:
        codec: The codec of the session.
        streams: Its streams.
        is_client: Whether it is a client's: only servers send results.

    """

    def __init__(self, codec: RiverCodec, streams: RiverStreams, is_client: bool) -> None:
        self._codec = codec
        self._streams = streams
        self._is_client = is_client

    def payload_of(self, error: ApplicationError) -> Payload:
        """Return the item that sends `error`. Raise it if this side, or its code, can only end a stream."""
        flags, body = failure_of(self._codec, error)
        # River, ProtocolError: codes that end both halves of a stream.
        if self._is_client or flags & CANCEL:
            raise error
        return Payload(body, ITEM_ERROR)

    def report(self, stream_id: int) -> None:
        """Report the errors between the items of a stream that this side opened."""
        stream = self._streams.get(stream_id)
        if stream is None:
            raise LocalError(f"stream {stream_id} is not open")
        stream.reports_errors = stream.answers_items

    def error_of(self, payload: Payload) -> ApplicationError | None:
        """Return the error that an item is; None if it is a value."""
        return error_of(self._codec, Raw(payload.data)) if payload.metadata == ITEM_ERROR else None
