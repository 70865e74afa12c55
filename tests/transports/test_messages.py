from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.protocols import PROTOCOLS
from penstock.transports.messages import PREFIX_BYTES, MessageCutter
from tests.sim.pair import CUTS, Cut


def prefixed(messages: list[bytes], width: int) -> bytes:
    return b"".join(len(message).to_bytes(width, "big") + message for message in messages)


MESSAGES = [b"", b"a", bytes(range(256)), b"", b"x" * 70_000, b"last"]


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("width", [3, 4])
def test_messages_are_what_was_written_however_it_was_cut(width: int, cut: Cut) -> None:
    cutter = MessageCutter(width)
    found = [message for piece in cut(prefixed(MESSAGES, width)) for message in cutter.cut(piece)]
    assert found == MESSAGES
    assert cutter.pending == 0


@given(st.data())
def test_messages_come_out_as_soon_as_they_are_whole(data: st.DataObject) -> None:
    width = data.draw(st.sampled_from([3, 4]))
    messages = data.draw(st.lists(st.binary(max_size=40), max_size=20))
    written = prefixed(messages, width)
    cutter = MessageCutter(width)
    found: list[bytes] = []
    at = 0
    while at < len(written):
        size = data.draw(st.integers(1, len(written) - at))
        found += cutter.cut(written[at : at + size])
        at += size
        # Just what is not handed out yet is held.
        assert len(prefixed(found, width)) + cutter.pending == at
        assert messages[: len(found)] == found
    assert found == messages


def test_held_bytes_include_headers_without_data() -> None:
    cutter = MessageCutter(3)
    assert cutter.cut(b"\0\0\3ab") == []
    assert cutter.pending == 5
    assert cutter.cut(b"c\0\0") == [b"abc"]
    assert cutter.pending == 2
    assert cutter.cut(b"\1d") == [b"d"]


def test_every_protocol_has_its_width() -> None:
    assert set(PREFIX_BYTES) == set(PROTOCOLS)
