from __future__ import annotations

import random
import socket
from ipaddress import IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirpool import LocalError, ProtocolError
from weirpool.transports.proxy_header import V2_START, ProxyHeader


def v2(command: int = 0x21, family: int = 0x11, body: bytes = b"", length: int | None = None) -> bytes:
    return V2_START + bytes((command, family)) + (len(body) if length is None else length).to_bytes(2) + body


def inet(address: str, tlvs: bytes = b"") -> bytes:
    packed = ip_address(address).packed
    return v2(0x21, 0x11 if len(packed) == 4 else 0x21, packed + packed + bytes(4) + tlvs)


V1 = b"PROXY TCP4 192.0.2.1 198.51.100.9 56324 443\r\n"
V6 = b"PROXY TCP6 2001:db8::1 ::1 56324 443\r\n"
LONGEST = b"PROXY UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535".ljust(105, b"x") + b"\r\n"
VALID = {
    V1: "192.0.2.1",
    V6: "2001:db8::1",
    b"PROXY TCP6 ::ffff:192.0.2.1 ::1 56324 443\r\n": "192.0.2.1",
    b"PROXY TCP4 0.0.0.0 0.0.0.0 0 65535\r\n": "0.0.0.0",
    b"PROXY UNKNOWN\r\n": "",
    b"PROXY UNKNOWN 1.1.1.1 2.2.2.2 1 2\r\n": "",
    LONGEST: "",
    inet("192.0.2.1"): "192.0.2.1",
    inet("2001:db8::1"): "2001:db8::1",
    inet("::ffff:192.0.2.1"): "192.0.2.1",
    inet("192.0.2.1", b"\x01\0\2h2\x04\0\0"): "192.0.2.1",
    inet("192.0.2.1", bytes(65_535 - 12)): "192.0.2.1",
    v2(0x21, 0x12, bytes(12)): "0.0.0.0",
    v2(0x21, 0x22, bytes(36)): "::",
    v2(0x21, 0x32, bytes(216)): "",
    v2(0x21, 0x00): "",
    v2(0x20, 0x00): "",
    v2(0x20, 0x11, bytes(12)): "",
    # The family of LOCAL is ignored, and so is all that follows.
    v2(0x20, 0xFF, b"x"): "",
    v2(0x21, 0x00, b"xyz"): "",
    v2(0x21, 0x31, b"/run/client".ljust(108, b"\0") + bytes(108)): "",
}


def read(data: bytes, random_source: random.Random | None = None) -> tuple[str, bytes]:
    """Return the address in a header, and the bytes that follow it. The source decides how it is split."""
    header = ProxyHeader()
    while header.wants:
        if not data:
            raise EOFError
        count = header.wants if random_source is None else random_source.randint(1, header.wants)
        header.feed(data[:count])
        data = data[count:]
    return header.address, data


class Bytewise(random.Random):
    def randint(self, a: int, b: int) -> int:
        return 1


SPLITS = {"whole": None, "bytewise": Bytewise(), "random": random.Random(7)}


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("header", VALID, ids=lambda header: header[:60].decode("latin-1"))
def test_header_names_the_client_and_leaves_its_bytes(header: bytes, split: str) -> None:
    # THREATS 95
    for client in (b"", b"\r\n", b"\n", b"\x16\x03\x01" + bytes(200), header):
        assert read(header + client, SPLITS[split]) == (VALID[header], client)


@pytest.mark.parametrize("header", VALID, ids=lambda header: header[:60].decode("latin-1"))
def test_header_is_incomplete_at_every_byte(header: bytes) -> None:
    for end in range(0, len(header), 1 if len(header) < 300 else 997):
        with pytest.raises(EOFError):
            read(header[:end])


@pytest.mark.parametrize(
    "wrong",
    [
        # THREATS 95
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\n",
        b"proxy TCP4 192.0.2.1 198.51.100.9 1 2\r\n",
        b"PROXY\r\nUNKNOWN123",
        b"PROXY  TCP4 192.0.2.1 198.51.100.9 1 2\r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.9 1 2 \r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.9 1\r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.9 1 2\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.9 1 2\rx",
        b"PROXY TCP4 192.0.2.01 198.51.100.9 1 2\r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.9 01 2\r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.9 1 65536\r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.9 -1 2\r\n",
        b"PROXY TCP4 192.0.2 198.51.100.9 1 2\r\n",
        b"PROXY TCP4 ::1 ::1 1 2\r\n",
        b"PROXY TCP6 192.0.2.1 ::1 1 2\r\n",
        b"PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n",
        b"PROXY UDP4 192.0.2.1 198.51.100.9 1 2\r\n",
        b"PROXY UNKNOWNS 192.0.2.1\r\n",
        LONGEST[:-2] + b"x\r\n",
        b"PROXY UNKNOWN " + b"x" * 10_000,
        V2_START[:11] + b"\r",
        v2(0x11, body=bytes(12)),
        v2(0x31, body=bytes(12)),
        v2(0x22, body=bytes(12)),
        v2(0x21, 0x10, bytes(12)),
        v2(0x21, 0x13, bytes(12)),
        v2(0x21, 0x01),
        v2(0x21, 0x41, bytes(300)),
        v2(0x21, 0x11, bytes(11)),
        v2(0x21, 0x21, bytes(35)),
        v2(0x21, 0x31, bytes(215)),
    ],
    ids=lambda wrong: wrong[:60].decode("latin-1"),
)
@pytest.mark.parametrize("split", SPLITS)
def test_malformed_headers_raise(wrong: bytes, split: str) -> None:
    with pytest.raises(ProtocolError, match="PROXY header"):
        read(wrong, SPLITS[split])


def test_other_protocols_are_refused_at_their_first_byte() -> None:
    for byte in set(range(256)) - {0x0D, ord("P")}:
        with pytest.raises(ProtocolError, match=f"the first bytes are {byte:02x}, not a PROXY header"):
            ProxyHeader().feed(bytes((byte,)))


def test_type_length_values_are_not_stored() -> None:
    header = ProxyHeader()
    rest = inet("192.0.2.1", bytes(60_000))
    while header.wants:
        count = min(header.wants, 1_000)
        header.feed(rest[:count])
        rest = rest[count:]
    assert len(header._data) <= 16 + 216


def test_feeding_more_than_wanted_raises() -> None:
    with pytest.raises(LocalError, match="wants 15"):
        ProxyHeader().feed(V1)


@given(st.binary(max_size=300), st.sampled_from(list(VALID)), st.integers(0, 300), st.randoms())
def test_mutated_headers_are_read_the_same_however_they_are_split(
    noise: bytes, header: bytes, place: int, source: random.Random
) -> None:
    data = header[:place] + noise + header[place + len(noise) :]
    outcomes: set[object] = set()
    for split in (None, Bytewise(), source):
        try:
            address, rest = read(data, split)
            assert not address or socket.getaddrinfo(address, 1, flags=socket.AI_NUMERICHOST)
            outcomes.add((address, rest))
        except (ProtocolError, EOFError) as error:
            outcomes.add(type(error))
    assert len(outcomes) == 1


@given(st.ip_addresses(), st.ip_addresses(), st.integers(0, 65_535), st.binary(max_size=64))
def test_both_versions_name_any_address(source: object, target: object, port: int, client: bytes) -> None:
    left, right = ip_address(str(source)), ip_address(str(target))
    if left.version != right.version:
        right = left
    line = f"PROXY TCP{left.version} {left} {right} {port} {port}\r\n".encode()
    packed = left.packed + right.packed + port.to_bytes(2) * 2
    for header in (line, v2(0x21, 0x11 if left.version == 4 else 0x21, packed)):
        mapped = left.ipv4_mapped if isinstance(left, IPv6Address) else None
        assert read(header + client) == (str(mapped or left), client)
