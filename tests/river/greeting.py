"""Replays conversations that were recorded without the greeting, the heartbeat after a server's first response.

The recorded client is made to acknowledge the greeting, and later messages of our server are numbered without it.
Nothing else is changed.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from tests.river.peers import is_greeting
from weirpool.wire.river.message import Message
from weirpool.wire.river.values import decode_value


class Greeting:
    """Shifts the numbers of one recorded conversation.

    Args:
        codec: ``json`` or ``msgpack``.

    """

    def __init__(self, codec: str) -> None:
        self._codec = codec
        self._msgpack = codec == "msgpack"
        self._met: set[str] = set()

    def to_server(self, data: bytes) -> bytes:
        """Return the client's message as if it had received the greeting."""
        try:
            # Not by our own codec, so that a client's errors are preserved.
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
        """Return the server's message as if it had sent no greeting; None for the greeting."""
        if is_greeting(message):
            return None
        body = decode_value(bytes(message.payload), self._codec)
        if body.get("type") != "HANDSHAKE_RESP":
            message.seq -= 1
        elif body["status"]["ok"]:
            self._met.add(body["status"]["sessionId"])
        return message
