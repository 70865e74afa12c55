"""The vectors of the two drafts, and what each of them means, as `weirpool.wire.rsocket.dump` would say it.

Their meanings follow patterns of their own; the few that do not are written out by hand.
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

VECTORS = Path(__file__).parent.parent / "vectors"
DIALECTS = ("reactivesocket-0.2", "reactivesocket-0.0")
PREFIXES = {"none": 0, "u24": 3, "u32-inclusive": 4}
NUMBERS = {
    "stream": "stream_id",
    "sid": "stream_id",
    "code": "code",
    "ttl": "ttl_ms",
    "time": "ttl_ns",
    "ka": "keepalive_ms",
    "keepalive": "keepalive_ms",
    "life": "lifetime_ms",
    "lifetime": "lifetime_ms",
    "lastClient": "last_received_client_position",
}
ERRORS = {"INVALID_SETUP": 1, "APPLICATION_ERROR": 0x201}
PAYLOADS = {"PAYLOAD", "RESPONSE"}


class Vector(NamedTuple):
    """One vector: its dialect, its bytes, the size of the length prefix, and its meaning."""

    dialect: str
    raw: bytes
    prefix: int
    meaning: str

    @property
    def name(self) -> str:
        """The name for tests."""
        return f"{self.dialect}: {self.meaning[:50]}"


def load() -> list[Vector]:
    """Return all vectors that are frames of their dialect."""
    found = []
    for dialect in DIALECTS:
        for file in (f"{dialect}.json", f"{dialect}-peers.json"):
            for entry in json.loads((VECTORS / file).read_text()):
                raw = bytes.fromhex(entry["hex"])
                if raw not in NO_FRAMES:
                    found.append(Vector(dialect, raw, PREFIXES[entry["prefix"]], entry["meaning"]))
    return found


def facts(vector: Vector) -> list[dict[str, Any]]:
    """Return the `type`, fields and flags of each frame that the meaning names."""
    written = BY_HAND.get(vector.raw.hex())
    return [parsed(vector)] if written is None else written


def parsed(vector: Vector) -> dict[str, Any]:
    """Parse a meaning of the common pattern."""
    meaning = vector.meaning
    type = meaning.split()[0]
    found: dict[str, Any] = {"type": type}
    for key, value in re.findall(r"\b(\w+)=(0x[0-9a-f]+|\d+\^\d+(?:-1)?|\d+)", meaning):
        if key == "n":
            found["number_of_requests" if type == "LEASE" else "request_n"] = number(value)
        elif key in NUMBERS:
            found[NUMBERS[key]] = number(value)
    for name, code in ERRORS.items():
        if f" {name}" in meaning:
            found["code"] = code
    if version := re.search(r" v(\d)\.(\d)", meaning):
        found["major"], found["minor"] = int(version[1]), int(version[2])
    return found | strings(meaning) | flags(type, vector)


def number(value: str) -> int:
    """Return a number in the form of the meanings."""
    base, power, minus = value.removesuffix("-1").partition("^")
    return int(base) ** int(minus) - value.endswith("-1") if power else int(value, 0)


def strings(meaning: str) -> dict[str, Any]:
    """Return the strings that a meaning names."""
    found: dict[str, Any] = {}
    for key, value in re.findall(r"\b(metadata|data)[= ]('(?:[^'\\]|\\.)*')", meaning):
        raw = ast.literal_eval(value).encode()
        found[key] = raw if raw or key == "data" else None
    for key, value in re.findall(r"\b([md])mime[= ]'?([\w/+-]+)", meaning):
        found["metadata_mime" if key == "m" else "data_mime"] = value
    if token := re.search(r"token '(\w+)'", meaning):
        found["token"] = token[1].encode()
    if "no metadata" in meaning or "no payload" in meaning:
        found["metadata"] = None
    if "no data" in meaning or "no payload" in meaning:
        found["data"] = b""
    return found


def flags(type: str, vector: Vector) -> dict[str, bool]:
    """Return the flags that a meaning names, and those that it would name if they were set."""
    meaning = vector.meaning
    if type == "SETUP" and (named := re.search(r"flags=([LRS]*) |M\+([RLS+]+)", meaning)):
        letters = (named[1] or "") + (named[2] or "")
        return {"lease": "L" in letters, "strict": "S" in letters, "resume": "R" in letters}
    if type == "SETUP":
        return {"lease": "L flag" in meaning or "lease flag" in meaning}
    if type not in PAYLOADS:
        return {}
    complete = "COMPLETE" in meaning or "C sid" in meaning or "N|C" in meaning
    found = {"complete": complete, "follows": "fragment" in meaning}
    if vector.dialect == "reactivesocket-0.2":
        found["next"] = "NEXT" in meaning or "N|C" in meaning
    return found


NO_FRAMES = {
    # Its length counts itself, as with peers before March 2017; and a frame of the draft between the two.
    bytes.fromhex("000009000000052840"),
    bytes.fromhex(
        "000000240001100000000000000000020000ea600003a980057574662d38057574662d38000000140004400000000002000000066d646869"
    ),
}
BY_HAND: dict[str, list[dict[str, Any]]] = {
    "00002000000000040000000002000001f40000ea60055554462d38055554462d386869": [
        {
            "type": "SETUP",
            "keepalive_ms": 500,
            "lifetime_ms": 60_000,
            "metadata_mime": "UTF-8",
            "data_mime": "UTF-8",
            "data": b"hi",
        }
    ],
    "000010000000071d40000000020000026d6d71": [
        {"type": "REQUEST_CHANNEL", "stream_id": 7, "request_n": 2, "complete": True, "metadata": b"mm", "data": b"q"}
    ],
    "00000f000000000c8000000000000000006b": [{"type": "KEEPALIVE", "respond": True, "data": b"k"}],
    "0000130000266a2c000000020477656972646e657373": [
        {"type": "ERROR", "stream_id": 9834, "code": 0x204, "data": b"weirdness", "metadata": None}
    ],
    "00001e000000000400000000020000ea600003a980057574662d38057574662d3800000d0000000211000000026d646869": [
        {"type": "SETUP", "major": 0, "minor": 2, "keepalive_ms": 60_000, "lifetime_ms": 240_000, "data_mime": "utf-8"},
        {"type": "REQUEST_RESPONSE", "stream_id": 2, "metadata": b"md", "data": b"hi"},
    ],
    "0000150000000129400000024d4d6563686f3a68656c6c6f": [
        {"type": "PAYLOAD", "complete": True, "next": False, "metadata": b"MM", "data": b"echo:hello"}
    ],
    "000008000000012800763000000800000001280076310000080000000128007632000006000000012840": [
        *(
            {"type": "PAYLOAD", "complete": False, "next": False, "data": data, "metadata": None}
            for data in (b"v0", b"v1", b"v2")
        ),
        {"type": "PAYLOAD", "complete": True, "next": False, "data": b""},
    ],
    "00000001fe000000000164": [{"type": "EXT", "stream_id": 1, "ignore": True, "extended_type": 1, "data": b"d"}],
    "0000001a006000200000000000000001070000066d6464617461": [
        {"type": "RESPONSE", "stream_id": 1, "follows": True, "metadata": b"md", "metadata_type": 7, "data": b"data"}
    ],
    "000000180080ffff00000000000000000000000164617461": [
        {"type": "EXT", "stream_id": 0, "ignore": True, "extended_type": 1, "data": b"data"}
    ],
}
