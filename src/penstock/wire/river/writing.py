"""River's messages as one side of a session writes them: what is the same in all of them is encoded once.

Each comes with its length before it, because it is kept until it is acknowledged, and is sent again just so.
`writing.pyx` is the same for the compiled build. A property test holds the two equal.
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
        us: Our id.
        peer: The peer's.
        tag: What begins the ids that we make: at most 15 letters, digits and hyphens.

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
        """Return an id that was not used before, for a stream or a message."""
        self._made += 1
        return f"{self._tag}{self._made:x}"

    def name(self, own: str) -> bytes:
        """Return an id that :meth:`new_id` gave as messages have it."""
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
        """Return a message with its length before it.

        Args:
            seq: Its number.
            ack: The number of the message that we expect next.
            name: Its stream, encoded.
            flags: Its control flags.
            body: The body, encoded.
            wrap_ok: Wrap the body as `{ok: true, payload}`.
            route: Service and procedure with a dot between them, in a message that opens a stream.
            tracing: What it says of the caller's trace.

        Raises:
            LocalError: It cannot be encoded, or is longer than its length can say; or the route names no procedure.

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
            raise LocalError(f"a message of {size} bytes is longer than its length can say")
        return b"".join((size.to_bytes(PREFIX_BYTES, "big"), head, before, body, after))

    def _packed(self, fields: int, seq: int, ack: int, name: bytes, flags: int) -> bytes:
        """Return what stands before the body of a message in MessagePack."""
        own = self.new_id().encode()
        return b"%c\xa2id%c%b%b%b\xa3ack%b\xa8streamId%b\xaccontrolFlags%c\xa7payload" % (
            0x80 | fields, 0xA0 | len(own), own, self._from_to, _packed_number(seq), _packed_number(ack), name, flags,
        )  # fmt: skip


def _packed_number(number: int) -> bytes:
    """Return a number that is not negative in MessagePack."""
    if number < 0x80:
        return b"%c" % number
    if number < 0x1_0000:
        return b"\xcd" + number.to_bytes(2, "big")
    if number < 0x1_0000_0000:
        return b"\xce" + number.to_bytes(4, "big")
    return b"\xcf" + number.to_bytes(8, "big")
