"""Data as text for the page."""

from __future__ import annotations

import pytest

from weirpool import Payload, WeirpoolError
from weirpool.tryit.texts import MAX_BYTES, Texts

PLAIN = Texts("rsocket+tcp://localhost:1")


def test_text_is_itself() -> None:
    assert PLAIN.outgoing("é") == "é".encode()
    assert PLAIN.incoming(Payload("é")) == {"size": 2, "text": "é"}


def test_bytes_are_hex() -> None:
    assert PLAIN.incoming(Payload(b"\xff\x00")) == {"size": 2, "hex": "ff 00", "cut": False}


@pytest.mark.parametrize("data", [b"x" * 10_000_000, "é".encode() * 1_000_000, b"\xff" * 1_000_000])
def test_large_items_are_cut(data: bytes) -> None:
    shown = PLAIN.incoming(Payload(data))
    assert shown["size"] == len(data) and shown["cut"]
    assert len(shown.get("text", "")) <= MAX_BYTES and len(shown.get("hex", "")) <= MAX_BYTES


def test_river_is_json() -> None:
    texts = Texts("river+tcp://localhost:1?codec=msgpack")
    data = texts.outgoing('{"a": 1}')
    assert texts.incoming(Payload(data))["text"].replace(" ", "") == '{"a":1}'
    with pytest.raises(WeirpoolError):
        texts.outgoing("{")
    assert texts.incoming(Payload(b"\xc1"))["size"] == 1
