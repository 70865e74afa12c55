from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

ENTRY_BYTES = 192
"""What an entry takes in addition to its bytes."""


def frame(body: bytes) -> bytes:
    return len(body).to_bytes(3, "big") + body


def replay(build, limit: int = 1 << 20, position: int = 0):
    return build.module("weirpool.core.replay").Replay(limit, 3, position)


def test_frame_bytes_returns_the_length_of_a_frame(build) -> None:
    kept = replay(build, position=100)
    kept.keep(frame(b"a" * 10) + frame(b"b" * 300), 310, True)
    for piece in (b"\0", b"\1", b"\0" + b"c" * 256):
        kept.keep(piece, 256 * (len(piece) > 1), piece == b"\0")
    assert [kept.frame_bytes(position) for position in (99, 100, 110, 410, 666)] == [0, 10, 300, 256, 0]


@given(st.lists(st.lists(st.integers(6, 40), min_size=1, max_size=4), min_size=1, max_size=12), st.data())
def test_since_returns_the_output_from_every_frame(builds, sizes, data) -> None:
    for build in builds.values():
        kept = replay(build)
        bodies: list[bytes] = []
        for entry in sizes:
            frames = [bytes([len(bodies) + i]) * size for i, size in enumerate(entry)]
            kept.keep(b"".join(map(frame, frames)), sum(entry), True)
            bodies += frames
        ends = [sum(map(len, bodies[:count])) for count in range(len(bodies) + 1)]
        assert kept.end == ends[-1]
        trimmed = data.draw(st.sampled_from(range(len(ends))))
        kept.trim(ends[trimmed])
        assert kept.first <= ends[trimmed]
        for count in range(trimmed, len(ends)):
            assert b"".join(kept.since(ends[count])) == b"".join(map(frame, bodies[count:]))


@given(
    st.lists(
        st.tuples(st.integers(6, 40), st.sampled_from([0, 0, 0, 30, 20_000]), st.booleans()), min_size=1, max_size=200
    )
)
def test_small_frames_and_data_by_reference_alternate(builds, frames) -> None:
    for build in builds.values():
        kept = replay(build)
        output, ends = b"", [0]
        for number, (head, data, trims) in enumerate(frames):
            body = bytes([number % 256]) * (head + data)
            kept.keep(len(body).to_bytes(3, "big") + body[:head], head, True)
            if data:
                kept.keep(body[head:], data, False)
            output += frame(body)
            ends.append(kept.end)
            if trims:
                kept.trim(ends[-1 - number % 2])
        assert kept.end == ends[-1]
        assert b"".join(kept.since(kept.first)) == output[len(output) - _length_since(frames, ends, kept.first) :]


def _length_since(frames, ends, position) -> int:
    return sum(3 + head + data for (head, data, _), start in zip(frames, ends, strict=False) if start >= position)


def test_small_frames_share_entries(build) -> None:
    kept = replay(build)
    for _ in range(100):
        kept.keep(frame(b"a" * 50), 50, True)
    assert kept.held == 100 * 50 + 2 * ENTRY_BYTES
    assert len(kept.since(64 * 50)) == 36
    kept.trim(63 * 50)
    assert kept.first == 0
    kept.trim(64 * 50)
    assert (kept.first, kept.held) == (64 * 50, 36 * 50 + ENTRY_BYTES)


def test_shared_entries_are_limited_in_size(build) -> None:
    kept = replay(build)
    for _ in range(40):
        kept.keep(frame(b"a" * 1_000), 1_000, True)
    assert kept.held == 40_000 + 3 * ENTRY_BYTES
    assert [len(piece) for piece in kept.since(0)] == [16 * 1_003, 16 * 1_003, *[1_003] * 8]


def test_shared_entry_is_one_piece_when_it_is_full(build) -> None:
    kept = replay(build)
    for _ in range(65):
        kept.keep(frame(b"a" * 50), 50, True)
    assert [len(piece) for piece in kept.since(0)] == [64 * 53, 53]


def test_large_data_is_not_copied(build) -> None:
    kept = replay(build)
    data = b"d" * 20_000
    kept.keep(frame(b"x" * 6), 6, True)
    kept.keep((20_006).to_bytes(3, "big") + b"h" * 6, 6, True)
    kept.keep(data, len(data), False)
    kept.keep(frame(b"x" * 6), 6, True)
    assert kept.since(0)[1] is data
    assert len(kept.since(0)) == 3


def test_data_by_reference_belongs_to_its_frame(build) -> None:
    kept = replay(build)
    body = b"h" * 6 + b"d" * 100
    kept.keep(len(body).to_bytes(3, "big") + body[:6], 6, True)
    kept.keep(body[6:], 100, False)
    kept.keep(frame(b"x" * 6), 6, True)
    assert b"".join(kept.since(0)) == frame(body) + frame(b"x" * 6)
    assert b"".join(kept.since(106)) == frame(b"x" * 6)


def test_invalid_positions_are_refused(build) -> None:
    # THREATS 29, 31
    kept = replay(build, position=50)
    kept.keep(frame(b"a" * 10), 10, True)
    for position in (49, 55, 61, 2**63 - 1):
        with pytest.raises(ValueError, match="position"):
            kept.since(position)
    with pytest.raises(ValueError, match="never sent"):
        kept.trim(61)


def test_oldest_entry_is_discarded_at_the_limit(build) -> None:
    kept = replay(build, limit=100)
    for number in range(50):
        kept.keep(frame(bytes([number]) * 10), 10, True)
    assert (kept.first, kept.end) == (400, 500)


def test_what_is_kept_is_counted(build) -> None:
    # THREATS 30, 88
    module = build.module("weirpool.core.replay")
    account = build.module("weirpool.account").Account(1_000)
    kept = module.Replay(200, 3, 0, account)
    for _ in range(3):
        kept.keep(frame(b"a" * 50), 50, True)
    assert account.retained == account.held == kept.held == 3 * (50 + ENTRY_BYTES)
    kept.keep(frame(b"a" * 100), 100, True)
    assert account.retained == kept.held == 200 + 3 * ENTRY_BYTES
    kept.trim(150)
    assert account.retained == kept.held == 100 + ENTRY_BYTES
    kept.drop()
    assert (account.retained, account.held, kept.held) == (0, 0, 0)
    assert (kept.first, kept.end, kept.since(250)) == (250, 250, [])


def test_what_was_kept_before_is_counted_for_its_session(build) -> None:
    account = build.module("weirpool.account").Account(1_000)
    kept = replay(build)
    kept.keep(frame(b"a" * 50), 50, True)
    kept.belong(account)
    assert account.retained == 50 + ENTRY_BYTES
    kept.trim(50)
    assert account.retained == 0
