"""What sets one dialect of the RSocket family apart from another: values, and a codec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..wire.codec import Codec
from ..wire.rsocket_v1 import RSocketV1

__all__ = ["RSOCKET_1_0", "Dialect"]


@dataclass(frozen=True)
class Dialect:
    """One protocol version of the family.

    Attributes:
        name: As it stands in URLs and on the command line.
        codec: Bytes to frames and back.
        version: Major and minor, as our SETUP says them.
        accepted: The versions that a SETUP may name.
        prefix_bytes: The length prefix on stream transports.
        min_frame_bytes: The header.

    """

    name: str
    codec: type[Codec]
    version: tuple[int, int]
    accepted: frozenset[tuple[int, int]]
    prefix_bytes: int
    min_frame_bytes: int


RSOCKET_1_0: Final = Dialect(
    name="rsocket-1.0",
    codec=RSocketV1,
    version=(1, 0),
    # The 1.0 candidate called itself 0.2, and living peers still do.
    accepted=frozenset({(1, 0), (0, 2)}),
    prefix_bytes=3,
    min_frame_bytes=6,
)
