"""The RSocket 1.0 vectors, and what each of them means, as `weirpool.wire.rsocket.dump` would say it.

Most meanings follow a pattern that is parsed here. Those that do not are in a table, written out by hand.
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

VECTORS = Path(__file__).parent.parent / "vectors" / "rsocket-1.0.json"
CONNECTION_TYPES = {"SETUP", "LEASE", "KEEPALIVE", "METADATA_PUSH", "RESUME", "RESUME_OK"}
FLAGS = ("follows", "complete", "next", "respond", "lease")
# The names of numbers in meanings, and in the specification.
NUMBERS = {
    "stream": "stream_id",
    "code": "code",
    "position": "position",
    "ttl": "ttl_ms",
    "keepalive": "keepalive_ms",
    "lifetime": "lifetime_ms",
    "major": "major",
    "minor": "minor",
    "lastServer": "last_received_server_position",
    "firstClient": "first_available_client_position",
    "lastClient": "last_received_client_position",
}


class Vector(NamedTuple):
    """One vector: its bytes, the size of the length prefix, and its meaning."""

    raw: bytes
    prefix: int
    meaning: str


def load() -> list[Vector]:
    """Return all vectors."""
    return [
        Vector(bytes.fromhex(entry["hex"]), 3 if entry["prefix"] == "u24" else 0, entry["meaning"])
        for entry in json.loads(VECTORS.read_text())
    ]


def facts(vector: Vector) -> list[dict[str, Any]]:
    """Return the `type`, fields and flags of each frame that the meaning names."""
    written = BY_HAND.get(vector.raw.hex())
    return [parsed(vector.meaning)] if written is None else written


def parsed(meaning: str) -> dict[str, Any]:
    """Parse a meaning of the common pattern."""
    type = meaning.split()[0]
    found: dict[str, Any] = {"type": type}
    for key, value in re.findall(r"(\w+)=(0x[0-9a-fA-F]+|\d+\^\d+-1|\d+|max)(?=[\s;,)]|$)", meaning):
        number = numeric(value)
        if key in FLAGS:
            found[key] = bool(number)
        elif key == "n":
            found["number_of_requests" if type == "LEASE" else "request_n"] = number
        elif key in NUMBERS:
            found[NUMBERS[key]] = number
    if version := re.search(r" v(\d)\.(\d)", meaning):
        found["major"], found["minor"] = int(version[1]), int(version[2])
    if type in CONNECTION_TYPES:
        found["stream_id"] = 0
    if "C+N set" in meaning:
        found |= {"complete": True, "next": True}
    if "I flag set" in meaning:
        found["ignore"] = True
    return found | strings(meaning) | bodies_of_js(meaning)


def numeric(value: str) -> int:
    """Return a number in the form of the meanings."""
    if value == "max":
        return 2**31 - 1
    base, power, minus = value.partition("^")
    return int(base) ** int(minus.removesuffix("-1")) - 1 if power else int(value, 0)


def strings(meaning: str) -> dict[str, Any]:
    """Return the strings, bytes and MIME types that a meaning names."""
    found: dict[str, Any] = {}
    for key, value in re.findall(r"\b(metadata|data|message|token|resume)=(b?'(?:[^'\\]|\\.)*'|None|token\b)", meaning):
        raw = literal(value)
        if key == "metadata" and raw == b"" and "present" not in meaning:
            raw = None
        found[{"message": "data", "resume": "token"}.get(key, key)] = raw
    for key, value in re.findall(r"\b([md])mime=(\S+)", meaning):
        found["metadata_mime" if key == "m" else "data_mime"] = "a" * 255 if value == "255*'a'" else value.strip("'")
    if "no token" in meaning:
        found["token"] = None
    if re.search("no metadata(?! length)", meaning) or "no payload" in meaning or meaning.endswith("empty"):
        found["metadata"] = None
    if "no data" in meaning or "no payload" in meaning or meaning.endswith("empty"):
        found["data"] = b""
    return found


def literal(value: str) -> bytes | None:
    """Return bytes from a Python literal or plain text."""
    if value == "token":
        return b"token"
    parsed = ast.literal_eval(value)
    return parsed.encode() if isinstance(parsed, str) else parsed


def bodies_of_js(meaning: str) -> dict[str, Any]:
    """Return metadata and data of the snapshots of rsocket-js, which only name what is absent."""
    match = re.match(r"(\w+) \1 frames( with binary (?:data|content))?(?: without ([a-z/]+))?(?: \(|$)", meaning)
    if not match:
        return {}
    type, binary, without = match.groups()
    found: dict[str, Any] = {}
    if type not in ("KEEPALIVE", "ERROR"):
        found["metadata"] = None if "metadata" in (without or "") else b"\x0d\x0e\x0f" if binary else b"<metadata>"
    if type == "ERROR":
        found["data"] = b"<errorMessage>"
    elif type not in ("LEASE", "METADATA_PUSH"):
        empty = without is not None and without.split("/")[0] == "data"
        found["data"] = b"" if empty else b"\x0a\x0b\x0c" if binary else b"<data>"
    if type == "SETUP":
        found |= {
            "token": b"<resumeToken>",
            "metadata_mime": "<metadataMimeType>",
            "data_mime": "<dataMimeType>",
            "resume": True,
            "lease": True,
        }
    return found


CANCEL_123 = {"type": "CANCEL", "stream_id": 123, "ignore": False}
ROUTE_ADD = b"\xfe\x00\x00\x04\x03add"
HELLO_WORLD = b'\xa1\x00\x00\x05hello\x85\x00\x00\x11{"hello":"world"}'
SUM_ARGUMENTS = b'{"x":10, "y":20}'
# The meanings of fragments of metadata "metadata12" and data "databytes0" have only positions, not contents.
BY_HAND: dict[str, list[dict[str, Any]]] = {
    "00000b000000012c000000020164": [{"type": "ERROR", "stream_id": 1, "code": 0x201, "data": b"d"}],
    "0a0b0c0d2600": [{"type": "CANCEL", "stream_id": 0x0A0B0C0D, "ignore": True}],
    "0a0b0c0d200001020304": [{"type": "REQUEST_N", "stream_id": 0x0A0B0C0D, "request_n": 0x01020304}],
    "000021000000011100000008fe000004036164647b2278223a31302c202279223a32307d": [
        {"type": "REQUEST_RESPONSE", "stream_id": 1, "metadata": ROUTE_ADD, "data": SUM_ARGUMENTS}
    ],
    "00003700000001110000001ea100000568656c6c6f850000117b2268656c6c6f223a22776f726c64227d7b2278223a31302c20"
    "2279223a32307d": [{"type": "REQUEST_RESPONSE", "stream_id": 1, "metadata": HELLO_WORLD, "data": SUM_ARGUMENTS}],
    "0000060000007b24000000130000266a2c000000020477656972646e657373"
    "0000060000007b24000000060000007b24000000060000007b2400": [
        CANCEL_123,
        {"type": "ERROR", "stream_id": 9834, "code": 0x204, "data": b"weirdness"},
        CANCEL_123,
        CANCEL_123,
        CANCEL_123,
    ],
    "0000000111800000056d65746164": [
        {"type": "REQUEST_RESPONSE", "stream_id": 1, "follows": True, "metadata": b"metad", "data": b""}
    ],
    "0000000128a06461746162797465": [
        {"type": "PAYLOAD", "stream_id": 1, "follows": True, "next": True, "metadata": None, "data": b"databyte"}
    ],
    "0000000128207330": [
        {"type": "PAYLOAD", "stream_id": 1, "follows": False, "next": True, "complete": False, "data": b"s0"}
    ],
    "000000011880000000046461746162": [
        {"type": "REQUEST_STREAM", "stream_id": 1, "follows": True, "request_n": 4, "metadata": None, "data": b"datab"}
    ],
    "0000000128207974657330": [
        {"type": "PAYLOAD", "stream_id": 1, "follows": False, "next": True, "complete": False, "data": b"ytes0"}
    ],
    "0000000129a00000056d65746164": [
        {"type": "PAYLOAD", "stream_id": 1, "follows": True, "next": True, "complete": False, "metadata": b"metad"}
    ],
    "0000000128607330": [
        {"type": "PAYLOAD", "stream_id": 1, "follows": False, "next": True, "complete": True, "data": b"s0"}
    ],
    "0000000531006d64": [{"type": "METADATA_PUSH", "stream_id": 5, "metadata": b"md"}],
    "0000000128e062": [
        {"type": "PAYLOAD", "stream_id": 1, "follows": True, "complete": True, "next": True, "data": b"b"}
    ],
    "00000001288062": [
        {"type": "PAYLOAD", "stream_id": 1, "follows": True, "complete": False, "next": False, "data": b"b"}
    ],
    "00000001200000000000": [{"type": "REQUEST_N", "stream_id": 1, "request_n": 0}],
    "00000001200080000001": [{"type": "REQUEST_N", "stream_id": 1, "request_n": 1}],
    "000000002c0000000001626164": [{"type": "ERROR", "stream_id": 0, "code": 1, "data": b"bad"}],
    "000000000400000100000000000000000000036d2f7803642f79": [
        {
            "type": "SETUP",
            "stream_id": 0,
            "keepalive_ms": 0,
            "lifetime_ms": 0,
            "metadata_mime": "m/x",
            "data_mime": "d/y",
        }
    ],
}
LYING_METADATA = "0000000111000000106162"
"""The vector that is not a frame: its metadata length runs past its end."""
RESERVED_BIT = "00000001200080000001"
"""The vector that does not round-trip: a reserved bit is set, which is written as 0."""
