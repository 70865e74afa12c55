"""What trusted proxies say about their clients. The first byte of an input selects the PROXY protocol or HTTP headers.

A PROXY header is read in pieces, whose size is the second byte. HTTP headers are lines, whose first byte selects
Forwarded or X-Forwarded-For.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import ip_address, ip_network
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
        yield bytes((0, size)) + SIGNATURE + b"\x21\x21\0\x24" + bytes(10) + b"\xff\xff\xc0\0\2\1" + bytes(20)
        yield bytes((0, size)) + SIGNATURE + b"\x20\0\0\0"
    for peer in range(len(PEERS)):
        yield bytes((1 + 2 * peer,)) + b'\0for=192.0.2.1, for="[2001:db8::2]:1";proto=http;by=_me\n\0for=10.0.0.3'
        yield bytes((1 + 2 * peer,)) + b'\0by=" ,;\\"";FOR="[::ffff:192.0.2.7]:_p" ,;, for="10.0.0\\.3:8"\n\0proto=http'
        yield bytes((1 + 2 * peer,)) + b"\x01192.0.2.1, 10.0.0.3\n\x0110.9.9.9"
        yield bytes((1 + 2 * peer,)) + b'\0for="192.0.2.1:9"\n\x01[2001:db8::1]:80, ::ffff:192.0.2.1:80, 192.0.2.1'


def outcome(build: Build, data: bytes) -> object:
    """Return the client's address; and how many bytes of a PROXY header were read."""
    options = data[0] if data else 0
    if options & 1:
        names = build.module("weirpool.networks")
        read = build.module("weirpool.transports.forwarded").client_address
        return attempt(build, read, PEERS[options >> 1 & 3], *_headers(data), names.networks(TRUSTED))
    header = build.module("weirpool.transports.proxy_header").ProxyHeader()
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
        _judge_headers(data, found)
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


def _judge_headers(data: bytes, found: str) -> None:
    peer = PEERS[data[0] >> 1 & 3]
    forwarded, others = _headers(data)
    named = {peer}
    if _is_trusted(peer) and (forwarded or others):
        nodes = [_elements(",".join(forwarded))] if forwarded else []
        if others:
            nodes.append([node.strip(" \t") for node in ",".join(others).split(",") if node.strip(" \t")])
        named = {_last_untrusted(peer, each) for each in nodes}
    if named != {found}:
        raise Difference(f"the headers name {named}, not {found!r}")


def _last_untrusted(client: str, nodes: list[str]) -> str:
    while nodes and _is_trusted(client):
        node = nodes.pop()
        if not node or node[0] == "_" or node.lower().startswith("unknown"):
            break
        if node[0] == "[":
            node = node[1:].partition("]")[0]
        elif node.count(":") == 1:
            node = node.partition(":")[0]
        client = _canonical(node)
    return client


def _is_trusted(address: str) -> bool:
    """Return whether an address is trusted; "unix" is."""
    return not address or any(ip_address(_canonical(address)) in ip_network(each) for each in TRUSTED[:2])


def _elements(text: str) -> list[str]:
    """Return the `for` of each element of a valid Forwarded header."""
    nodes = []
    for element in _split(text, ","):
        pairs = [pair.strip(" \t").partition("=") for pair in _split(element, ";")]
        values = {name.lower(): value for name, _, value in pairs if name}
        if values:
            nodes.append(_unquoted(values.get("for", "")))
    return nodes


def _split(text: str, separator: str) -> Iterable[str]:
    """Split a text at the separators that are not in quotes."""
    part, quoted, escaped = "", False, False
    for letter in text:
        if letter == separator and not quoted:
            yield part
            part = ""
            continue
        part += letter
        quoted ^= letter == '"' and not escaped
        escaped = letter == "\\" and not escaped
    yield part


def _unquoted(value: str) -> str:
    if not value.startswith('"'):
        return value
    letters = iter(value[1:-1])
    return "".join(next(letters) if letter == "\\" else letter for letter in letters)


def _canonical(text: str) -> str:
    """Return an address as it is shown; IPv4 addresses that IPv6 maps are IPv4 addresses."""
    address = ip_address(text)
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)
