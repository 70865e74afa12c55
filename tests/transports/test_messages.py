from __future__ import annotations

from penstock.protocols import PROTOCOLS
from penstock.transports.messages import PREFIX_BYTES


def test_every_protocol_has_its_width() -> None:
    assert set(PREFIX_BYTES) == set(PROTOCOLS)
