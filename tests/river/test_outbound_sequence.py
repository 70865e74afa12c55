from __future__ import annotations

import pytest

from weirpool.account import ITEM_BYTES, Account
from weirpool.errors import ProtocolError
from weirpool.river.outbound import UNBOOKED_BYTES, Sequence


def test_acknowledged_messages_are_dropped() -> None:
    sequence = Sequence(10, 1_000)
    for message in (b"a", b"bb", b"ccc"):
        sequence.sent(message)
    assert (sequence.seq, sequence.first, sequence.unacked_bytes) == (3, 0, 6)
    sequence.acknowledged(2)
    assert (sequence.first, sequence.unacked, sequence.unacked_bytes) == (2, [b"ccc"], 3)
    # An older one has no effect.
    sequence.acknowledged(1)
    assert sequence.first == 2
    sequence.acknowledged(3)
    assert (sequence.first, sequence.unacked, sequence.unacked_bytes) == (3, [], 0)


def test_largest_is_the_largest_unacknowledged_message() -> None:
    sequence = Sequence(10, 1_000)
    assert sequence.largest == 0
    for message in (b"a", b"ccc", b"bb"):
        sequence.sent(message)
    assert sequence.largest == 3
    sequence.acknowledged(2)
    assert sequence.largest == 2


def test_acknowledgement_of_unsent_messages_is_an_error() -> None:
    sequence = Sequence(10, 1_000)
    sequence.sent(b"a")
    with pytest.raises(ProtocolError, match="acknowledges 2 messages, but only 1 were sent"):
        sequence.acknowledged(2)
    assert sequence.first == 0


def test_half_of_the_limit_is_reserved() -> None:
    sequence = Sequence(4, 1_000)
    rooms = []
    while not sequence.over():
        rooms.append(sequence.room)
        sequence.sent(b"a")
    assert rooms == [2, 1, 0, 0, 0]


def test_bytes_are_limited() -> None:
    sequence = Sequence(100, 1_000)
    sequence.sent(b"a" * 499)
    assert sequence.room == 49
    sequence.sent(b"a")
    assert sequence.room == 0 and not sequence.over()
    sequence.sent(b"a" * 501)
    assert sequence.over()


def test_unacknowledged_message_can_be_replaced() -> None:
    sequence = Sequence(10, 1_000)
    for message in (b"a", b"b" * 600, b"ccc", b"d"):
        sequence.sent(message)
    assert sequence.room == 0
    sequence.acknowledged(1)
    sequence.replace(1, b"bb")
    assert (sequence.seq, sequence.first, sequence.unacked) == (4, 1, [b"bb", b"ccc", b"d"])
    assert sequence.unacked_bytes == 6 and sequence.room == 2


def test_unacknowledged_messages_are_counted() -> None:
    # THREATS 30, 88
    account = Account(100_000)
    sequence = Sequence(10, 100_000, account)
    for message in (b"a" * 5_000, b"b" * 6_000, b"c" * 7_000):
        sequence.sent(message)
    assert account.retained == account.held == 18_000 + 3 * ITEM_BYTES
    sequence.replace(1, b"b" * 1_000)
    assert account.retained == 13_000 + 3 * ITEM_BYTES
    sequence.acknowledged(2)
    assert account.retained == 7_000 + ITEM_BYTES
    sequence.acknowledged(3)
    assert account.retained == account.held == 0


def test_account_lags_behind_small_messages_a_little() -> None:
    account = Account(100_000)
    sequence = Sequence(1_000, 1_000_000, account)
    for _ in range(500):
        sequence.sent(b"small")
        kept = sequence.unacked_bytes + ITEM_BYTES * (sequence.seq - sequence.first)
        assert kept - UNBOOKED_BYTES <= account.retained <= kept
    sequence.acknowledged(500)
    assert account.retained == account.held == 0
