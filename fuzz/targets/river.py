"""River messages. The first byte of an input selects the codec and whether results are unwrapped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from tests.builds import Build

from fuzz.outcomes import VECTORS, attempt
from fuzz.targets import Difference

CODECS: Final = ("json", "msgpack")
FIELDS: Final = (
    "id", "from_", "to", "seq", "ack", "stream_id", "control_flags", "service_name", "procedure_name", "tracing",
    "fault",
)  # fmt: skip
WORDS: Final = (
    b'"payload":',
    b'"ok":true',
    b'"$t":"',
    b'"$b":"',
    b"\\u0000",
    b"\x82\xa2ok\xc3\xa7payload",
    b"\xc7\1\0",
)
NAMES: Final = {
    "id": "id",
    "from_": "from",
    "to": "to",
    "seq": "seq",
    "ack": "ack",
    "stream_id": "streamId",
    "control_flags": "controlFlags",
    "service_name": "serviceName",
    "procedure_name": "procedureName",
}


def seeds() -> Iterator[bytes]:
    """Yield messages of the reference implementation."""
    for path in sorted((VECTORS / "river").glob("*.json")):
        transcript = json.loads(path.read_text())
        codec = CODECS.index(transcript["codec"])
        for event in transcript["events"]:
            raw = bytes.fromhex(event["hex"]) if "hex" in event else event.get("utf8", "").encode()
            if event.get("kind") == "frame" and 0 < len(raw) < 600:
                yield bytes((codec,)) + raw
                yield bytes((codec | 2,)) + raw


def outcome(build: Build, data: bytes) -> object:
    """Return the fields of the message, and whether its payload is a body that can be sent unchanged."""
    options = data[0] if data else 0
    codec = build.module("weirpool.wire.river.codec").CODECS[CODECS[options & 1]]
    body = data[1:]
    message = attempt(build, codec.decode, body, 0, len(body), bool(options & 2))
    found = message if isinstance(message, tuple) else [_plain(getattr(message, name)) for name in FIELDS]
    if not isinstance(message, tuple):
        found.append(message.payload if message.ok_payload is None else codec.before + message.ok_payload + codec.after)
    return found, attempt(build, codec.body, body)


def _plain(value: Any) -> Any:
    """Return a value in comparable form. The representation of an extension has its address."""
    if isinstance(value, msgspec.msgpack.Ext):
        return value.code, bytes(value.data)
    if isinstance(value, dict):
        return [(_plain(name), _plain(inner)) for name, inner in value.items()]
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return repr(value) if isinstance(value, Exception | float) else value


def judge(build: Build, data: bytes, found: Any) -> None:
    """Compare the fields of a valid message with those that another library reads."""
    if not data or isinstance(found[0], tuple) or found[0][FIELDS.index("fault")]:
        return
    read = _unpacked if data[0] & 1 else _parsed
    try:
        fields = read(data[1:])
    except ValueError:
        if data[0] & 1:
            # The names and values of unknown fields are skipped, so that they need not be UTF-8.
            return
        raise Difference(f"the standard library cannot read what is read as {found[0]}") from None
    for name, value in zip(FIELDS, found[0], strict=False):
        if name in NAMES and (fields.get(NAMES[name]) or None) != (value or None):
            raise Difference(f"{name} is {fields.get(NAMES[name])!r}, not {value!r}")
    # The body of a result was taken out of it.
    if not data[0] & 2 and repr(read(found[0][-1])) != repr(fields["payload"]):
        raise Difference(f"payload is {fields['payload']!r}, not {found[0][-1]!r}")


def _parsed(data: bytes) -> Any:
    # See above: unknown fields.
    return json.loads(data.decode(errors="replace"))


def _unpacked(data: bytes) -> Any:
    return msgspec.msgpack.decode(data, ext_hook=lambda code, content: (code, bytes(content)))
