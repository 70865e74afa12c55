"""Frames for people: objects, lines, and objects encoded again.

The first byte of an input selects the version, the framing, the codec and secrets; the second one the size of pieces.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final
from unicodedata import bidirectional, category

from tests.builds import Build, load
from tests.hostile.mutations import DIALECTS, recorded

from fuzz.outcomes import VECTORS, attempt, pieces
from fuzz.targets import Difference

LINES: Final = True
VERSIONS: Final = (*DIALECTS, "reactive-streams-0", "river-2.0")
UNSAFE: Final = {"Cc", "Cs", "Zl", "Zp", "LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
WORDS: Final = (b"\x1b[31m", b"\xc2\x9b", b"\n", b"\xe2\x80\xae", b"\0\0\0\1")


def seeds() -> Iterator[bytes]:
    """Yield the bytes of whole sessions, with and without secrets."""
    build = load("plain")
    for number, dialect in enumerate(DIALECTS):
        for said in recorded(build, dialect):
            yield from (bytes((number + options, 0)) + said[:1_500] for options in (5, 25))
    raw = [bytes.fromhex(entry["hex"]) for entry in json.loads((VECTORS / "reactive-streams-0.json").read_text())]
    yield b"\3\0" + b"".join(raw)
    yield b"\3\7" + b"".join(raw)
    for path in sorted((VECTORS / "river").glob("*.json")):
        transcript = json.loads(path.read_text())
        options = 9 + 10 * (transcript["codec"] == "msgpack")
        said = [bytes.fromhex(event["hex"]) for event in transcript["events"][:9] if "hex" in event]
        yield bytes((options, 0)) + b"".join(len(each).to_bytes(4, "big") + each for each in said)[:3_500]
        yield from (bytes((options - 5, 0)) + each for each in said[:2])


def _dump(build: Build, options: int) -> tuple[Any, int, str]:
    """Return a dump, a width of lengths and a codec."""
    dump = build.module("weirpool.protocols").dump_of(VERSIONS[options % 5])
    widths, codecs = sorted(dump.framings.values()), dump.codecs or ("",)
    return dump, widths[options // 5 % len(widths)], codecs[options // 10 % len(codecs)]


def outcome(build: Build, data: bytes) -> object:
    """Return objects, these encoded and read again, and lines."""
    options, size = (data[0], data[1]) if len(data) > 1 else (0, 0)
    with build.active():
        dump, width, codec = _dump(build, options)
        reader = dump.reader("", width == 0, bool(options // 20 & 1))
        lines = [line for piece in pieces(data[2:], size) for line in reader.lines(piece)]
        shown = attempt(build, lambda: list(dump.frames(data[2:], width, codec)))
        if isinstance(shown, tuple):
            return shown, None, lines
        # What is printed and read again.
        shown = json.loads(json.dumps(shown))
        encoder = dump.encoder(width, codec)
        encoded = attempt(build, lambda: [encoder(each) for each in shown])
        if isinstance(encoded, tuple):
            return shown, encoded, lines
        return shown, attempt(build, lambda: list(dump.frames(b"".join(encoded), width, codec))), lines


def judge(build: Build, data: bytes, found: Any) -> None:
    """Check that lines change no terminal, and that objects stay the same."""
    shown, again, lines = found
    for line in lines:
        if any(category(letter) in UNSAFE or bidirectional(letter) in UNSAFE for letter in line):
            raise Difference(f"this line cannot be printed: {line!r}")
    if isinstance(shown, list) and isinstance(again, list):
        # Some numbers have several encodings.
        for each in (*shown, *again):
            each.pop("length", None)
        if again != shown:
            raise Difference(f"{shown} became {again}")
