"""River v2.0, TransportMessage: one decoded message."""

from __future__ import annotations

from typing import Any

from ...errors import SessionError

__all__ = ["Message"]


class Message:
    """River, TransportMessage.

    Attributes:
        id: The id of the message.
        from_: The id of the sender.
        to: The id of the receiver.
        seq: The number of the message.
        ack: The number of the message that the sender expects next.
        stream_id: The id of the stream.
        encoded: The encoded `stream_id`, if the scanner found it; else empty.
        control_flags: Any of `ACK`, `OPEN`, `CANCEL` and `CLOSE` of :mod:`weirpool.wire.river.codec`.
        payload: The encoded body.
        ok_payload: The payload of `{ok: true, payload}`, if the scanner found it; then `payload` is empty.
        service_name: The service, in messages that open a stream.
        procedure_name: The procedure, in messages that open a stream.
        tracing: The decoded tracing object.
        fault: Why the payload is invalid; then `payload` is null. None if it is valid.

    """

    __slots__ = (
        "ack", "control_flags", "encoded", "fault", "from_", "id", "ok_payload", "payload", "procedure_name", "seq",
        "service_name", "stream_id", "to", "tracing",
    )  # fmt: skip

    def __init__(
        self,
        id: str,
        from_: str,
        to: str,
        seq: int,
        ack: int,
        stream_id: str,
        control_flags: int,
        payload: bytes,
        service_name: str | None = None,
        procedure_name: str | None = None,
        tracing: dict[str, Any] | None = None,
    ) -> None:
        self.id = id
        self.from_ = from_
        self.to = to
        self.seq = seq
        self.ack = ack
        self.stream_id = stream_id
        self.control_flags = control_flags
        self.payload = payload
        self.encoded = b""
        self.ok_payload: bytes | None = None
        self.service_name = service_name
        self.procedure_name = procedure_name
        self.tracing = tracing
        self.fault: SessionError | None = None
