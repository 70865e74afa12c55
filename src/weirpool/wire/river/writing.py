"""Encodes the River messages of one side of a session; the parts that all of them share are encoded once.

Messages include their length prefix, because they are kept until acknowledged and may be sent again unchanged.
`writing.pyx` does the same in the compiled build. A property test compares the two.
"""

from __future__ import annotations

from typing import Any

from ...errors import LocalError
from ..framing import PREFIX_BYTES
from .codec import RiverCodec
from .grammar import REQUIRED

__all__ = ["Writer"]


class Writer:
    """Writes the messages of one side of a session.

    Args:
        codec: The codec.
        us: The id of this side.
        peer: The id of the peer.
        tag: The prefix of new ids: at most 15 letters, digits and hyphens.

    Raises:
        LocalError: An id cannot be encoded.

    """

    def __init__(self, codec: RiverCodec, us: str, peer: str, tag: str) -> None:
        self._field = codec.field
        self._route_fields = codec.route_fields
        self._is_json = codec.is_json
        self._before = codec.before
        self._after = codec.after
        self._tag = tag
        self._made = 0
        between = b'","from":%b,"to":%b,"seq":' if codec.is_json else b"\xa4from%b\xa2to%b\xa3seq"
        self._from_to = between % (codec.encoded(us), codec.encoded(peer))

    def new_id(self) -> str:
        """Return a new id for a stream or a message."""
        self._made += 1
        return f"{self._tag}{self._made:x}"

    def name(self, own: str) -> bytes:
        """Encode an id from :meth:`new_id`."""
        ascii_id = own.encode()
        return b'"%b"' % ascii_id if self._is_json else b"%c%b" % (0xA0 | len(ascii_id), ascii_id)

    def message(
        self,
        seq: int,
        ack: int,
        name: bytes,
        flags: int,
        body: bytes,
        wrap_ok: bool = False,
        route: str | None = None,
        tracing: dict[str, Any] | None = None,
    ) -> bytes:
        """Return a message with its length prefix.

        Args:
            seq: The number of the message.
            ack: The number of the message that this side expects next.
            name: The encoded stream id.
            flags: The control flags.
            body: The encoded body.
            wrap_ok: Whether to wrap the body as `{ok: true, payload}`.
            route: `service.procedure` in a message that opens a stream.
            tracing: The tracing object.

        Raises:
            LocalError: The message cannot be encoded or is too long; or the route is invalid.

        """
        more = b"" if route is None else self._route_fields(route)
        if tracing is not None:
            more += self._field("tracing", tracing)
        before = self._before if wrap_ok else b""
        after = self._after if wrap_ok else b""
        if self._is_json:
            after += more + b"}" if more else b"}"
            self._made += 1
            head = b'{"id":"%b%x%b%d,"ack":%d,"streamId":%b,"controlFlags":%d,"payload":' % (
                self._tag.encode(), self._made, self._from_to, seq, ack, name, flags,
            )  # fmt: skip
        else:
            after += more
            fields = REQUIRED + (2 if route is not None else 0) + (tracing is not None)
            head = self._packed(fields, seq, ack, name, flags)
        size = len(head) + len(before) + len(body) + len(after)
        if size >> 32:
            raise LocalError(f"a message of {size} bytes is too long for a 4-byte length")
        return b"".join((size.to_bytes(PREFIX_BYTES, "big"), head, before, body, after))

    def _packed(self, fields: int, seq: int, ack: int, name: bytes, flags: int) -> bytes:
        """Return a message in MessagePack without its body."""
        own = self.new_id().encode()
        return b"%c\xa2id%c%b%b%b\xa3ack%b\xa8streamId%b\xaccontrolFlags%c\xa7payload" % (
            0x80 | fields, 0xA0 | len(own), own, self._from_to, _packed_number(seq), _packed_number(ack), name, flags,
        )  # fmt: skip


def _packed_number(number: int) -> bytes:
    """Encode a number, which must not be negative, in MessagePack."""
    if number < 0x80:
        return b"%c" % number
    if number < 0x1_0000:
        return b"\xcd" + number.to_bytes(2, "big")
    if number < 0x1_0000_0000:
        return b"\xce" + number.to_bytes(4, "big")
    return b"\xcf" + number.to_bytes(8, "big")
