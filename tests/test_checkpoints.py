from __future__ import annotations

import pytest

from weirpool.checkpoints import Private, before, compose, dissect, join, split
from weirpool.errors import LocalError


def test_checkpoint_is_split_and_joined() -> None:
    assert split(join(b"public", b"private")) == (b"public", b"private")
    assert dissect(compose(b"public", 7, [b"a", b"bc"])) == (b"public", Private(7, [b"a", b"bc"]))


def test_private_part_is_empty_without_secrets() -> None:
    assert compose(b"public", 7, []) == join(b"public", b"")
    assert dissect(join(b"public", b"")) == (b"public", Private(0, []))


@pytest.mark.parametrize(
    "data", [b"", b"junk", b"\x80", b"\x92\xc4\x01a", b"\xdf" + b"\xff" * 8, join(b"a", b"b")[:-1]]
)
def test_invalid_checkpoint_raises(data: bytes) -> None:
    for read in (split, dissect):
        with pytest.raises(LocalError, match=f"invalid session checkpoint \\({len(data)} bytes\\)"):
            read(data)


@pytest.mark.parametrize("private", [b"junk", b"\x92\x07", b"\x92\x07\x07"])
def test_damaged_private_part_raises(private: bytes) -> None:
    with pytest.raises(LocalError, match="invalid session checkpoint"):
        dissect(join(b"public", private))


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (10, []),
        (12, [b"aa"]),
        (13, [b"aa", b"b"]),
        (16, [b"aa", b"b", b"ccc"]),
        # Within a message, after a hole, and before all of them: no messages end there.
        (15, []),
        (17, []),
        (9, []),
    ],
)
def test_before_returns_messages_up_to_the_position(end: int, expected: list[bytes]) -> None:
    assert before(Private(10, [b"aa", b"b", b"ccc"]), end, len) == expected
