from __future__ import annotations

from weirpool.aio import holds


def test_each_reason_has_a_bit_of_its_own() -> None:
    reasons = [getattr(holds, name) for name in holds.__all__ if name != "DECODING"]
    assert sorted(reasons) == [1 << bit for bit in range(len(reasons))]


def test_decoding_goes_on_although_an_account_is_full() -> None:
    assert holds.DECODING == holds.TURN | holds.UNREAD
