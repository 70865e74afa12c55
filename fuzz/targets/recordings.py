"""Recordings: lines of JSON from a file that somebody else may have made."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.builds import Build

from fuzz.outcomes import attempt

LINES: Final = True
HEAD: Final = b'{"weirpool_recording":1,"url":"rsocket+tcp://localhost:1","started":"now"}\n'
WORDS: Final = (
    b'{"t":0,"stream":1,"event":"',
    b'"request"',
    b'"item"',
    b'"demand"',
    b'"n":',
    b'"kind":"stream"',
    b'"route":"a"',
    b"\n",
    b'"data_hex":"',
    b'"metadata":',
    b"1e308",
    b"18446744073709551615",
    b"-1",
    b"[[[[[[[[",
    b'{"a":{"a":',
    b'"code":"',
)


def seeds() -> Iterator[bytes]:
    """Yield recordings of each kind, and one whose last line is not complete."""
    lines = [
        b'{"t":0.0,"stream":1,"event":"request","kind":"call","route":"a","data":"x"}\n',
        b'{"t":0.1,"stream":1,"event":"item","data_hex":"ff","metadata":"m"}\n{"t":0.2,"stream":1,"event":"end"}\n',
        b'{"t":0.3,"stream":2,"event":"request","kind":"channel","route":"b"}\n{"t":0.4,"stream":2,"event":"demand","n":5}\n',
        b'{"t":0.5,"stream":2,"event":"error","code":769,"message":"no","more":[1]}\n',
    ]
    for count in range(len(lines) + 1):
        yield HEAD + b"".join(lines[:count])
    yield HEAD + lines[0] + lines[1][:-9]


def outcome(build: Build, data: bytes) -> object:
    """Return the interactions of a recording and their events."""
    format, replaying = (build.module(f"weirpool.recording.{name}") for name in ("format", "replaying"))
    lines = attempt(build, lambda: repr([event for _, event in format.events(BytesIO(data), "it")]))
    with TemporaryDirectory() as folder:
        path = Path(folder, "recording")
        path.write_bytes(data)
        found = attempt(build, replaying.Recording.read, path)
        if isinstance(found, tuple):
            return lines, found[0]
        events = [attempt(build, lambda each=each: repr(list(found.events(each)))) for each in found.interactions]
    return lines, [(each.number, each.kind, each.route, each.items) for each in found.interactions], events
