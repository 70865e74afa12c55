"""Single RSocket frames. The first byte of an input selects the dialect, and the rest is a body."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from rsocket import frame as theirs
from tests.builds import Build

from fuzz.outcomes import attempt, vectors
from fuzz.targets import Difference

DIALECTS: Final = ("rsocket-1.0", "reactivesocket-0.2", "reactivesocket-0.0")
PREFIXES: Final = {"u24": 3, "u32": 4, "u32-inclusive": 4}
WORDS: Final = (b"\0\0\0\1", b"\0\0\0\0\0\0\0\1", b"message/x.rsocket.composite-metadata.v0", b"\0\0\3")


def seeds() -> Iterator[bytes]:
    """Yield the vectors of all dialects."""
    for number, dialect in enumerate(DIALECTS):
        for raw, prefix in vectors(dialect):
            yield bytes((number,)) + raw[PREFIXES.get(prefix, 0) :]


def outcome(build: Build, data: bytes) -> object:
    """Return the frame as an object and as a line, and its encoding."""
    dialect = DIALECTS[data[0] % 3] if data else DIALECTS[0]
    body = data[1:]
    dump = build.module("weirpool.wire.rsocket.dump")
    codec = dump.codec_of(dialect)
    frame = attempt(build, codec.decode, body, 0, len(body))
    if isinstance(frame, tuple):
        return frame
    shown = dump.to_object(frame, dialect)
    return shown, dump.line(frame, dialect), attempt(build, codec.encode, frame)


def judge(build: Build, data: bytes, found: Any) -> None:
    """Compare a valid frame of RSocket 1.0 with rsocket-py, which checks no lengths."""
    if not data or data[0] % 3 or not isinstance(found[0], dict):
        return
    shown = found[0]
    try:
        frame = theirs.parse_or_ignore(data[1:])
    except Exception:
        # Among them codes and types that it does not know, and MIME types that are not UTF-8.
        return
    if frame is None:
        return
    same = {
        "type": frame.frame_type.name,
        "stream_id": frame.stream_id,
        "request_n": _number(frame, "initial_request_n", "request_n"),
        "position": _number(frame, "last_received_position"),
        "ttl_ms": _number(frame, "time_to_live"),
        "number_of_requests": _number(frame, "number_of_requests"),
        "code": _number(frame, "error_code"),
        "data": frame.data.hex(),
    }
    if any(len(shown.get(name) or "") > 127 for name in ("metadata_mime", "data_mime")):
        # It reads these lengths as signed numbers.
        return
    if frame._flags_metadata:
        same["metadata"] = frame.metadata.hex()
    wrong = {key: value for key, value in same.items() if key in shown and value is not None and shown[key] != value}
    if wrong:
        raise Difference(f"rsocket-py reads {wrong}, not {shown}")


def _number(frame: Any, *names: str) -> int | None:
    """Return a number without its reserved bit; None if the frame does not have it."""
    for name in names:
        value = getattr(frame, name, None)
        if value is not None:
            return int(value) if name == "error_code" else int(value) & ((1 << (63 if "position" in name else 31)) - 1)
    return None
