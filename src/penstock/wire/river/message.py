"""River v2.0, TransportMessage: one message, decoded."""

from __future__ import annotations

from typing import Any

from ...errors import SessionError

__all__ = ["Message"]


class Message:
    """River, TransportMessage.

    Attributes:
        id: The message's own id.
        from_: Who sent it.
        to: Whom it is for.
        seq: Its number.
        ack: The number of the message that its sender expects next.
        stream_id: The stream that it belongs to.
        encoded: The same, as it travelled, where that was seen at once.
        control_flags: Any of `ACK`, `OPEN`, `CANCEL` and `CLOSE` of :mod:`penstock.wire.river.codec`.
        payload: The body, as it travels.
        ok_payload: The payload of `{ok: true, payload}`, where that was seen at once. `payload` is empty then.
        service_name: In messages that open a stream.
        procedure_name: In messages that open a stream.
        tracing: As it was sent, decoded.
        fault: Why the payload cannot be used; None: it can. `payload` is null then.

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
