"""Translates requests, items and errors between the two protocols of a bridge.

What both have passes unchanged. What one of them lacks is dropped and counted; `docs/how-to/bridge.md` has the table.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..aio.handlers import Request
from ..connection import Connection
from ..errors import (
    ApplicationError,
    Canceled,
    ConnectError,
    FrameError,
    Invalid,
    LeaseMissing,
    LocalError,
    Rejected,
    SessionClosed,
    SetupRejected,
    UnsupportedKind,
    WeirpoolError,
)
from ..observe.carriers import AnyCarrier
from ..payload import Payload
from ..protocols import COMPOSITE, TextForm, spec_of
from ..schema.named import RESERVED, body_of, read_body
from ..texts import shown, shown_line
from .counters import Counters

__all__ = ["Side", "Translation"]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two connections.

    Attributes:
        connection: The connection.
        form: The text form of its data; None if data is text, or has no form of its own.

    """

    connection: Connection
    form: TextForm | None

    @property
    def mime(self) -> str:
        """The MIME type of metadata; empty if the protocol's metadata has none."""
        default = spec_of(self.connection.protocol).metadata_mime
        return "" if default is None else self.connection.metadata_mime or default

    @property
    def string_codes(self) -> bool:
        """True if error codes are strings."""
        return spec_of(self.connection.protocol).string_codes


class Translation:
    """Translates what one side has sent for the other.

    Args:
        source: The side that sends requests.
        target: The side that answers them.
        counters: Counts what is lost.

    """

    def __init__(self, source: Side, target: Side, counters: Counters) -> None:
        self._source = source
        self._target = target
        self._counters = counters
        self._carrier = AnyCarrier()
        self._same_metadata = source.mime == target.mime != ""
        self._same_data = _encoding(source) == _encoding(target)

    def request(self, request: Request) -> tuple[str, Payload]:
        """Return the route and the payload of a request; the route is empty if the metadata contains it."""
        payload = request.payload
        data = self._convert(payload.data, self._source, self._target)
        if self._same_metadata:
            return "", Payload(data, payload.metadata)
        trace = self._carrier.read(request)
        rest = self._rest(payload.metadata, bool(trace))
        sent = Request(request.kind, request.route, Payload(data, rest), self._target.connection)
        self._carrier.write(sent, trace)
        return sent.route_beside, sent.payload

    def sent(self, item: Payload) -> Payload:
        """Return an item that follows a request."""
        return self._item(item, self._source, self._target)

    def received(self, item: Payload) -> Payload:
        """Return a response, or an item of one."""
        return self._item(item, self._target, self._source)

    def error(self, error: Exception) -> Exception:
        """Return the error to report to the side that has sent the request."""
        if isinstance(error, ApplicationError):
            try:
                return self._application_error(error)
            except (FrameError, LocalError):
                # Its extras have no form on this side; the text has.
                return type(error)(error.code, error.message)
        place = self._target.connection.address or "the other side"
        if isinstance(error, UnsupportedKind):
            return Rejected(message=str(error))
        if isinstance(error, LeaseMissing):
            return Rejected(message=f"{place} has granted no lease for this request; try again later")
        if isinstance(error, ConnectError | SessionClosed | SetupRejected):
            return Rejected(message=f"{place} cannot be reached: {error}")
        if isinstance(error, FrameError | LocalError):
            protocol = self._target.connection.protocol
            return Invalid(message=f"this cannot be sent with {protocol}: {error}")
        if isinstance(error, WeirpoolError):
            text = f"the connection to {place} was lost; part of this may have been done: {error}"
            return Canceled(message=text)
        return error

    def _application_error(self, error: ApplicationError) -> ApplicationError:
        """Return an error with a code that the side of the request can send."""
        to_strings = self._source.string_codes
        if to_strings == self._target.string_codes:
            metadata = error.metadata if self._same_metadata else None
            data = self._extras(error) if to_strings else error.data
            return type(error)(error.code, error.message, data, metadata)
        if type(error) in (Rejected, Canceled, Invalid):
            return type(error)(message=error.message)
        if isinstance(error.code, int):
            return self._with_word(error, error.code) if to_strings else ApplicationError(message=str(error))
        if to_strings:
            return ApplicationError(error.code, error.message)
        # A string becomes part of the text.
        own = error.code not in RESERVED
        data = body_of(error.code, error.message, self._extras(error) or b"") if own else None
        return ApplicationError(message=str(error), data=data)

    def _with_word(self, error: ApplicationError, number: int) -> ApplicationError:
        """Return an error whose code is a word, as in the data of a named error, or else the number in hex."""
        named = read_body(error.data)
        if named is None or named[0] in RESERVED:
            return ApplicationError(f"0x{number:03X}", error.message)
        code, message, extras = named
        if extras and self._source.form is not None:
            extras = self._source.form.from_json(extras)
        # A peer chooses them; they are logged here, too.
        return ApplicationError(shown_line(code), shown(message), extras or None)

    def _extras(self, error: ApplicationError) -> bytes | None:
        """Return the extras of an error for the side of the request: as JSON if that has numeric codes."""
        if error.data == error.message.encode():
            return None
        if self._source.string_codes:
            return self._convert(error.data, self._target, self._source)
        return error.data if self._target.form is None else self._target.form.to_json(error.data)

    def _item(self, item: Payload, source: Side, target: Side) -> Payload:
        metadata = item.metadata
        if metadata is not None and not target.mime:
            metadata = None
            self._counters.metadata_dropped += 1
        if self._same_data and metadata is item.metadata:
            return item
        return Payload(self._convert(item.data, source, target), metadata)

    def _rest(self, metadata: bytes | None, traced: bool) -> bytes | None:
        """Return the metadata of a request beside its route and trace, as far as the target can carry it."""
        if metadata is None or (traced and not self._source.mime):
            return None
        if not self._source.mime and self._target.mime == COMPOSITE:
            return metadata
        if not self._source.mime or (self._source.mime == COMPOSITE and _entries(metadata) > 1 + traced):
            self._counters.metadata_dropped += 1
        return None

    def _convert(self, data: bytes, source: Side, target: Side) -> bytes:
        """Return data in the encoding of the other side. Without data, there is nothing to convert."""
        if self._same_data or not data:
            return data
        if source.form is not None:
            data = source.form.to_json(data)
        return data if target.form is None else target.form.from_json(data)


def _entries(metadata: bytes) -> int:
    """Return the number of entries of composite metadata."""
    from .. import Metadata

    return len(Metadata.decode(metadata).entries)


def _encoding(side: Side) -> str:
    """Return the name of the encoding, if it is not text."""
    return "" if side.form is None else side.connection.data_mime
