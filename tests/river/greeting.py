"""Conversations that were recorded without the greeting: the heartbeat that our servers send behind their first answer.

The recorded client is taken to have received it: it acknowledges one message more, and what our server says after it is
counted without it. Nothing else is changed.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from penstock.wire.river.message import Message
from penstock.wire.river.values import decode_value
from tests.river.peers import is_greeting


class Greeting:
    """Moves the numbers of one recorded conversation.

    Args:
        codec: ``json`` or ``msgpack``.

    """

    def __init__(self, codec: str) -> None:
        self._codec = codec
        self._msgpack = codec == "msgpack"
        self._met: set[str] = set()

    def to_server(self, data: bytes) -> bytes:
        """Return what the client would have said if it had been greeted."""
        try:
            # Not by our own codec: what the client gets wrong stays as wrong.
            said: Any = msgspec.msgpack.decode(data) if self._msgpack else json.loads(data)
        except ValueError:
            return data
        if not isinstance(said, dict) or type(said.get("ack")) not in (int, float):
            return data
        payload = said.get("payload")
        if isinstance(payload, dict) and payload.get("type") == "HANDSHAKE_REQ":
            state = payload.get("expectedSessionState")
            session = payload.get("sessionId")
            if session in self._met and isinstance(state, dict) and type(state.get("nextExpectedSeq")) in (int, float):
                state["nextExpectedSeq"] += 1
        else:
            said["ack"] += 1
        return msgspec.msgpack.encode(said) if self._msgpack else json.dumps(said, ensure_ascii=False).encode()

    def from_server(self, message: Message) -> Message | None:
        """Return what the server would have said if it had not greeted; None: nothing."""
        if is_greeting(message):
            return None
        body = decode_value(bytes(message.payload), self._codec)
        if body.get("type") != "HANDSHAKE_RESP":
            message.seq -= 1
        elif body["status"]["ok"]:
            self._met.add(body["status"]["sessionId"])
        return message
