"""First frames that do not begin a session, and the codes of their answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

INVALID: Final = 0x001
REJECTED: Final = 0x003
REJECTED_RESUME: Final = 0x004
V00_INVALID: Final = 0x0001
V00_REJECTED: Final = 0x0100
LIMIT: Final = 2_000
"""The value of `max_setup_frame_bytes` that the long frames exceed."""

TIMES: Final = "00004e20 00015f90"
MIMES: Final = "03 612f62 03 632f64"


@dataclass(frozen=True)
class First:
    """A frame, and the code of its answer.

    Attributes:
        name: For tests.
        body: The frame without its length.
        code: The code of the answer.
        known: Whether its layout is that of a dialect; other frames are answered only if nothing else is possible.

    """

    name: str
    body: bytes
    code: int
    known: bool = True


def _first(name: str, body: str, code: int, known: bool = True, more: bytes = b"") -> First:
    return First(name, bytes.fromhex(body) + more, code, known)


LATER: Final = (
    _first("RESUME on a stream", f"00000001 3400 0001 0000 0010 {'74' * 16} {'00' * 16}", INVALID),
    _first("RESUME of nothing", f"00000000 3400 0001 0000 0010 {'74' * 16} {'00' * 16}", REJECTED_RESUME),
    _first("RESUME of 0.2", f"00000000 3400 0000 0002 0010 {'74' * 16} {'00' * 16}", REJECTED_RESUME),
    _first("RESUME that is cut", "00000000 3400 0001 0000 0010 7474", REJECTED_RESUME),
    _first("RESUME that is long", "00000000 3400 0001 0000 0800", REJECTED_RESUME, more=bytes(LIMIT)),
    _first("SETUP on a stream", f"00000001 0400 0001 0000 {TIMES} {MIMES}", INVALID),
    _first("SETUP that is cut", "00000000 0400 0001 0000 00", INVALID),
    _first("SETUP without a version", "00000000 0400 00", INVALID),
    _first("SETUP of another version", f"00000000 0400 0009 0009 {TIMES} {MIMES}", INVALID),
    _first("SETUP of nothing", f"00000000 0400 0001 0000 00000000 00000000 {MIMES}", INVALID),
    _first("SETUP that is long", f"00000000 0400 0001 0000 {TIMES} {MIMES}", REJECTED, more=bytes(LIMIT)),
    _first("LEASE", "00000000 0800 000003e8 0000000a", INVALID),
    _first("KEEPALIVE", "00000000 0c80 0000000000000000", INVALID),
    _first("REQUEST_RESPONSE", "00000001 1000 61", INVALID),
    _first("REQUEST_FNF", "00000001 1400 61", INVALID),
    _first("REQUEST_STREAM", "00000001 1800 00000001 61", INVALID),
    _first("REQUEST_STREAM that is cut", "00000001 1800 0000", INVALID),
    _first("REQUEST_CHANNEL", "00000001 1c00 00000001 61", INVALID),
    _first("REQUEST_N", "00000001 2000 00000001", INVALID),
    _first("CANCEL", "00000001 2400 000000", INVALID),
    _first("PAYLOAD", "00000001 2820 61", INVALID),
    _first("ERROR", "00000001 2c00 00000201", INVALID),
    _first("ERROR of the connection", "00000000 2c00 00000101", INVALID),
    _first("METADATA_PUSH", "00000000 3100 6d", INVALID),
    _first("RESUME_OK", "00000000 3800 0000000000000000", INVALID),
    _first("EXT", "00000000 fc00 00000001", INVALID),
    _first("EXT that may be ignored", "00000000 fe00 00000001", INVALID),
    _first("type 0x00", "00000000 0000 3132333435363738", INVALID, known=False),
    _first("type 0x0f", "00000000 3c00 3132333435363738", INVALID, known=False),
    _first("type 0x20", "00000000 8000 3132333435363738", INVALID, known=False),
    _first("type 0x3e", "00000000 f800 3132333435363738", INVALID, known=False),
    _first("type 0x20 that may be ignored", "00000000 8200 3132333435363738", INVALID, known=False),
    _first("the top bit of a stream", "80000001 1000 3132333435363738", INVALID, known=False),
    _first("PAYLOAD that is long", "00000001 2820", INVALID, known=False, more=bytes(LIMIT)),
    _first("less than a header", "00000000 10", INVALID, known=False),
)
"""First frames of RSocket 1.0 and ReactiveSocket 0.2."""

EARLIEST: Final = (
    _first("SETUP on a stream", f"00 00 0001 0000000000000005 {MIMES}", V00_INVALID),
    _first("SETUP of another version", f"01 00 0001 0000000000000000 {MIMES}", V00_INVALID),
    _first("SETUP that is cut", "00 00 0001 0000000000000000 09 61", V00_INVALID),
    _first("SETUP that is long", f"00 00 0001 0000000000000000 {MIMES}", V00_REJECTED, more=bytes(LIMIT)),
    _first("SETUP_ERROR", "00 00 0002 0000000000000000 00000001", V00_INVALID),
    _first("LEASE", f"00 00 0003 0000000000000000 {'00' * 16}", V00_INVALID),
    _first("REQUEST_RESPONSE", "00 00 0011 0000000000000001 61", V00_INVALID),
    _first("REQUEST_RESPONSE with 64 bits", "00 00 0011 ffffffffffffffff 61", V00_INVALID),
    _first("REQUEST_SUB", "00 00 0014 0000000000000001 0000000000000001", V00_INVALID),
    _first("CANCEL", "00 00 0016 0000000000000001", V00_INVALID),
    _first("RESPONSE", "00 00 0020 0000000000000001 61", V00_INVALID),
    _first("ERROR", "00 00 0021 0000000000000001 61", V00_INVALID),
    _first("METADATA_PUSH", "00 40 0031 0000000000000000 00000005 6d", V00_INVALID),
    _first("EXT", "00 80 ffff 0000000000000000 00000001", V00_INVALID),
    _first("type 0x77", "00 00 0077 0000000000000000", V00_INVALID, known=False),
    _first("a request of another version", "01 00 0011 0000000000000001", V00_INVALID, known=False),
)
"""First frames of ReactiveSocket 0.0."""

FOREIGN: Final = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40),
    b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: example.org\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9),
    b"SSH-2.0-OpenSSH_9.6\r\n",
)
"""First bytes of other protocols, which are never answered on a byte stream that they can reach."""
