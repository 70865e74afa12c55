"""What trusted proxies say about their clients. The first byte of an input selects the PROXY protocol or HTTP headers.

A PROXY header is read in pieces, whose size is the second byte. HTTP headers are lines, whose first byte selects
Forwarded or X-Forwarded-For.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any, Final

from tests.builds import Build

from fuzz.outcomes import attempt
from fuzz.targets import Difference

LINES: Final = True
TRUSTED: Final = ("10.0.0.0/8", "fd00::/8", "unix")
PEERS: Final = ("10.1.1.1", "", "192.0.2.9", "::ffff:10.2.2.2")
SIGNATURE: Final = b"\r\n\r\n\0\r\nQUIT\n"
WORDS: Final = (
    b"for=",
    b'"[2001:db8::1]:80"',
    b"unknown",
    b"_hidden",
    b"\r\n",
    b"PROXY TCP6 ",
    SIGNATURE,
    b"10.0.0.1, ",
)


def seeds() -> Iterator[bytes]:
    """Yield headers of all kinds."""
    for size in (0, 1, 5):
        yield bytes((0, size)) + b"PROXY TCP4 192.0.2.1 198.51.100.9 56324 443\r\nfirst"
        yield bytes((0, size)) + b"PROXY TCP6 2001:db8::1 ::1 56324 443\r\n"
        yield bytes((0, size)) + b"PROXY UNKNOWN\r\n"
        yield bytes((0, size)) + SIGNATURE + b"\x21\x11\0\x0f" + bytes(range(1, 13)) + b"\x04\0\0first"
        yield bytes((0, size)) + SIGNATURE + b"\x21\x21\0\x24" + b"\x20\x01" + bytes(34)
        yield bytes((0, size)) + SIGNATURE + b"\x20\0\0\0"
    for peer in range(len(PEERS)):
        yield bytes((1 + 2 * peer,)) + b'\0for=192.0.2.1, for="[2001:db8::2]:1";proto=http;by=_me\n\0for=10.0.0.3'
        yield bytes((1 + 2 * peer,)) + b"\x01192.0.2.1, 10.0.0.3\n\x0110.9.9.9"


def outcome(build: Build, data: bytes) -> object:
    """Return the client's address; and how many bytes of a PROXY header were read."""
    options = data[0] if data else 0
    if options & 1:
        names = build.module("penstock.networks")
        read = build.module("penstock.transports.forwarded").client_address
        return attempt(build, read, PEERS[options >> 1 & 3], *_headers(data), names.networks(TRUSTED))
    header = build.module("penstock.transports.proxy_header").ProxyHeader()
    content, size = data[2:], data[1] if len(data) > 1 else 0
    at = 0
    while header.wants and at < len(content):
        end = at + min(header.wants, size or header.wants)
        error = attempt(build, header.feed, content[at:end])
        if error is not None:
            return error
        at = min(end, len(content))
    return header.address, header.wants == 0, at


def _headers(data: bytes) -> tuple[list[str], list[str]]:
    """Return the Forwarded and the X-Forwarded-For headers of an input."""
    lines = data[1:].decode("latin-1").split("\n")
    return [line[1:] for line in lines if line[:1] < "\1"], [line[1:] for line in lines if line[:1] >= "\1"]


def judge(build: Build, data: bytes, found: Any) -> None:
    """Compare an address with the one that simple slices give."""
    if isinstance(found, tuple) and isinstance(found[-1], bool | type(None)) and len(found) == 3:
        # An error.
        return
    if data and data[0] & 1:
        _judge_headers(build, data, found)
    elif found[1]:
        _judge_proxy(data[2:], *found)


def _judge_proxy(content: bytes, address: str, _: bool, end: int) -> None:
    if content.startswith(SIGNATURE):
        size = 16 + int.from_bytes(content[14:16])
        width = {0x11: 4, 0x12: 4, 0x21: 16, 0x22: 16}.get(content[13], 0) if content[12] == 0x21 else 0
        shown = _canonical(str(ip_address(content[16 : 16 + width]))) if width else ""
    else:
        line, _, _ = content.partition(b"\r\n")
        # What follows `UNKNOWN` is ignored, so it may be any bytes.
        words = line.decode("latin-1").split(" ")
        size, shown = len(line) + 2, "" if words[1] == "UNKNOWN" else _canonical(words[2])
    if (shown, size) != (address, end):
        raise Difference(f"the client is {shown!r} after {size} bytes, not {address!r} after {end}")


def _judge_headers(build: Build, data: bytes, found: str) -> None:
    forwarded, others = _headers(data)
    trusted = build.module("penstock.networks").networks(TRUSTED)
    if forwarded or PEERS[data[0] >> 1 & 3] not in trusted:
        return
    client = PEERS[data[0] >> 1 & 3]
    for node in reversed([node.strip(" \t") for node in ",".join(others).split(",")]):
        if not node:
            continue
        if node.lower().startswith(("unknown", "_")):
            break
        host = (
            node[1:].partition("]")[0]
            if node[0] == "["
            else node.partition(":")[0]
            if "." in node.partition(":")[0]
            else node
        )
        client = _canonical(host)
        if client not in trusted:
            break
    if client != found:
        raise Difference(f"the client is {client!r}, not {found!r}")


def _canonical(text: str) -> str:
    """Return an address as it is shown; IPv4 addresses that IPv6 maps are IPv4 addresses."""
    address = ip_address(text)
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)
