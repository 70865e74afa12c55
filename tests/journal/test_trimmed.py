from __future__ import annotations

import pytest

from penstock import JournalCorrupt
from penstock.journal.trimmed import MAX_TRIMMED_BYTES, decode, encode


@pytest.mark.parametrize("position", [0, 7, 1 << 62])
def test_a_position_comes_back(position: int) -> None:
    assert decode(encode(position, "log"), "log", "_trimmed") == position
    assert len(encode(position, "log")) <= MAX_TRIMMED_BYTES


def test_every_flipped_bit_and_every_cut_is_found() -> None:
    # THREATS 97
    sound = encode(1234, "log")
    spoiled = [sound[:size] for size in range(len(sound))]
    spoiled += [
        bytes([*sound[:at], sound[at] ^ 1 << bit, *sound[at + 1 :]]) for at in range(len(sound)) for bit in range(8)
    ]
    for data in spoiled:
        with pytest.raises(JournalCorrupt, match="how far this log was trimmed"):
            decode(data, "log", "_trimmed")


def test_another_log_s_file_is_not_taken() -> None:
    with pytest.raises(JournalCorrupt):
        decode(encode(5, "another"), "log", "_trimmed")
