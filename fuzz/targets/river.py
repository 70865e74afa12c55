"""River messages. The first byte of an input selects the codec and whether results are unwrapped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

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
NAMES: Final = {"id": "id", "from_": "from", "to": "to", "stream_id": "streamId"}


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
    codec = build.module("penstock.wire.river.codec").CODECS[CODECS[options & 1]]
    body = data[1:]
    message = attempt(build, codec.decode, body, 0, len(body), bool(options & 2))
    found = message if isinstance(message, tuple) else [_plain(getattr(message, name)) for name in FIELDS]
    if not isinstance(message, tuple):
        found.append(message.payload if message.ok_payload is None else codec.before + message.ok_payload + codec.after)
    return found, attempt(build, codec.body, body)


def _plain(value: Any) -> Any:
    """Return errors and floats in comparable form."""
    return repr(value) if isinstance(value, Exception | float | dict) else value


def judge(build: Build, data: bytes, found: Any) -> None:
    """Compare the texts of a valid JSON message with those that the standard library reads."""
    if not data or data[0] & 1 or isinstance(found[0], tuple) or found[0][FIELDS.index("fault")]:
        return
    try:
        # The names and values of unknown fields are skipped, so that they need not be UTF-8.
        fields = json.loads(data[1:].decode(errors="replace"))
    except ValueError:
        raise Difference(f"the standard library cannot read what is read as {found[0]}") from None
    for name, value in zip(FIELDS, found[0], strict=False):
        if name in NAMES and fields[NAMES[name]] != value:
            raise Difference(f"{name} is {fields[NAMES[name]]!r}, not {value!r}")
