"""Random changes of an input."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

__all__ = ["MAX_INPUT_BYTES", "mutated"]

MAX_INPUT_BYTES: Final = 4_096
"""Defects of decoders show in short inputs, and short ones run fast."""
NUMBERS: Final = (0, 1, 2, 7, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0xFFFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
"""Numbers at the limits of fields."""
SIZES: Final = (1, 1, 2, 3, 4, 8, 16, 64)
CHANGES: Final = (1, 1, 1, 2, 4, 8)


def mutated(data: bytes, others: Sequence[bytes], words: Sequence[bytes], rng: Random) -> bytes:
    """Return `data` with changes.

    Args:
        data: An input.
        others: Inputs from which parts may be copied.
        words: Byte strings that mean something to the decoder.
        rng: The source of randomness.

    """
    changed = bytearray(data)
    for _ in range(rng.choice(CHANGES)):
        _change(changed, others, words, rng)
    return bytes(changed[:MAX_INPUT_BYTES])


def _change(data: bytearray, others: Sequence[bytes], words: Sequence[bytes], rng: Random) -> None:
    at = rng.randrange(len(data) + 1)
    size = rng.choice(SIZES)
    what = rng.randrange(9)
    if what == 0 and at < len(data):
        data[at] ^= 1 << rng.randrange(8)
    elif what == 1 and at < len(data):
        data[at] = (data[at] + rng.choice((-1, 1))) & 0xFF
    elif what == 2:
        width = rng.choice((1, 2, 3, 4, 8))
        number = rng.choice(NUMBERS) & ((1 << 8 * width) - 1)
        data[at : at + width] = number.to_bytes(width, rng.choice(("big", "little")))
    elif what == 3:
        del data[at : at + size]
    elif what == 4:
        data[at:at] = rng.randbytes(size)
    elif what == 5:
        data[at : at + size] = rng.randbytes(size)
    elif what == 6:
        begin = rng.randrange(len(data) + 1)
        data[at:at] = data[begin : begin + 4 * size]
    elif what == 7 and words:
        word = rng.choice(words)
        data[at : at + rng.choice((0, len(word)))] = word
    else:
        other = rng.choice(others) if others else b""
        begin = rng.randrange(len(other) + 1)
        data[at:] = other[begin:]
