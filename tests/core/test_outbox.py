from __future__ import annotations

import random


def test_take_returns_pieces_in_order_once(build) -> None:
    outbox = build.module("weirpool.core.outbox").Outbox()
    outbox.write(b"a")
    outbox.write(b"bc")
    assert outbox.size == 3
    assert outbox.take() == [b"abc"]
    assert outbox.take() == []
    assert outbox.size == 0


def test_large_pieces_are_separate_chunks(build) -> None:
    module = build.module("weirpool.core.outbox")
    rng = random.Random(1)
    for _ in range(50):
        outbox = module.Outbox()
        pieces = [bytes([i % 256]) * rng.choice((1, 100, 5_000, 31_000, 33_000, 200_000)) for i in range(40)]
        for piece in pieces:
            outbox.write(piece)
        chunks = outbox.take()
        assert b"".join(chunks) == b"".join(pieces)
        large = [piece for piece in pieces if len(piece) >= module.BY_REFERENCE_BYTES]
        assert [chunk for chunk in chunks if any(chunk is piece for piece in large)] == large
        assert all(len(chunk) <= module.WRITE_BYTES or any(chunk is piece for piece in large) for chunk in chunks)


def test_clear_removes_everything(build) -> None:
    outbox = build.module("weirpool.core.outbox").Outbox()
    outbox.write(b"x" * 100_000)
    outbox.clear()
    assert (outbox.take(), outbox.size) == ([], 0)
