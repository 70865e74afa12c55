"""The header of the PROXY protocol, versions 1 and 2, without sockets.

A proxy sends it before anything else, to name the client whose bytes it carries. See
https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt, sections 2.1 and 2.2.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from ..errors import LocalError, ProtocolError
from ..networks import parse_address

__all__ = ["ProxyHeader"]

V1_START: Final = b"PROXY "
V1_MIN_BYTES: Final = len(b"PROXY UNKNOWN\r\n")
V1_MAX_BYTES: Final = 107
"""Section 2.1: the longest line, with its CRLF."""
V1_LINE: Final = re.compile(rb"PROXY TCP([46]) ([0-9A-Fa-f.:]+) ([0-9A-Fa-f.:]+) (0|[1-9][0-9]*) (0|[1-9][0-9]*)\r\n")
V1_UNKNOWN: Final = re.compile(rb"PROXY UNKNOWN( [^\r\n]*)?\r\n")

V2_START: Final = b"\r\n\r\n\0\r\nQUIT\n"
V2_BYTES: Final = 16
"""Signature, version and command, family, and the length of the rest."""
LOCAL: Final = 0x20
PROXY: Final = 0x21
BLOCKS: Final = {0x00: 0, 0x11: 12, 0x12: 12, 0x21: 36, 0x22: 36, 0x31: 216, 0x32: 216}
"""The size of the addresses of each family and transport. All other values are invalid."""


class ProxyHeader:
    """Reads one header, of which it keeps at most 232 bytes.

    Attributes:
        wants: How many more bytes it needs at least; 0 when it is complete. Never feed more: the bytes after the header
            are the client's.
        address: The client's address when it is complete; empty if the proxy names none, because the connection is its
            own (a health check), or the client has no address.

    """

    __slots__ = ("_data", "_skipping", "address", "wants")

    def __init__(self) -> None:
        self._data = bytearray()
        self._skipping = False
        self.address = ""
        self.wants = V1_MIN_BYTES

    def feed(self, data: bytes) -> None:
        """Process the next bytes. Raises ProtocolError if they are not a header, as soon as that is known."""
        if len(data) > self.wants:
            raise LocalError(f"{len(data)} bytes were fed to a PROXY header that wants {self.wants}")
        if self._skipping:
            self.wants -= len(data)
            return
        self._data += data
        head = bytes(self._data)
        if V2_START.startswith(head[: len(V2_START)]):
            self._read_v2(head)
        elif V1_START.startswith(head[: len(V1_START)]):
            self._read_v1(head)
        else:
            raise ProtocolError(f"the first bytes are {head[:12].hex()}, not a PROXY header")

    def _read_v1(self, head: bytes) -> None:
        if head.endswith(b"\r\n"):
            self.address = _v1_address(head)
            self.wants = 0
            return
        room = V1_MAX_BYTES - len(head)
        if b"\n" in head or b"\r" in head[:-1] or not room:
            raise ProtocolError(f"a PROXY header of version 1 is malformed, or longer than {V1_MAX_BYTES} bytes")
        # The line feed, or a CRLF. Reading further could take bytes of the client.
        needed = 1 if head.endswith(b"\r") else 2
        self.wants = max(V1_MIN_BYTES - len(head), min(needed, room))

    def _read_v2(self, head: bytes) -> None:
        command = head[12] if len(head) > 12 else PROXY
        family = head[13] if len(head) > 13 else 0
        if command not in (LOCAL, PROXY):
            raise ProtocolError(f"a PROXY header has version and command {command:#04x}; known are 0x20 and 0x21")
        # Section 2.2: the family of LOCAL is ignored.
        if command == PROXY and family not in BLOCKS:
            raise ProtocolError(f"a PROXY header has the unknown family and transport {family:#04x}")
        if len(head) < V2_BYTES:
            self.wants = V2_BYTES - len(head)
            return
        block = 0 if command == LOCAL else BLOCKS[family]
        length = int.from_bytes(head[14:16])
        if length < block:
            raise ProtocolError(f"a PROXY header has {length} bytes of addresses; its family {family:#04x} has {block}")
        if len(head) < V2_BYTES + block:
            self.wants = V2_BYTES + block - len(head)
            return
        if block == 12:
            self.address = str(IPv4Address(head[16:20]))
        elif block == 36:
            self.address = str(parse_address(str(IPv6Address(head[16:32]))))
        # Only type-length-values follow.
        self._skipping = True
        self.wants = length - block


def _v1_address(line: bytes) -> str:
    """Return the source address of a line; empty for UNKNOWN, whose rest is ignored."""
    if V1_UNKNOWN.fullmatch(line):
        return ""
    found = V1_LINE.fullmatch(line)
    if found is not None:
        version, source, target, *ports = (part.decode() for part in found.groups())
        try:
            addresses = [ip_address(source), ip_address(target)]
        except ValueError:
            addresses = []
        if addresses and all(str(each.version) == version for each in addresses) and max(map(int, ports)) < 65_536:
            return str(parse_address(source))
    raise ProtocolError("a PROXY header of version 1 is malformed")
