"""Parts of a range for workers: batches that are joined, or split, as far as limits require."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

__all__ = ["cut", "pack"]


def cut(parts: Iterable[tuple[int, int, int]], max_rows: int, max_bytes: int) -> Iterator[tuple[int, int, int]]:
    """Yield batches, splitting those that are too large into equal pieces."""
    for start, end, size in parts:
        rows = end - start
        # Damage has no bytes and is not split: any number of rows may be missing.
        pieces = min(rows, max(-(-rows // max_rows), -(-size // max_bytes))) if size else 1
        for piece in range(pieces):
            first, stop = start + rows * piece // pieces, start + rows * (piece + 1) // pieces
            yield first, stop, size * (stop - first) // rows


def pack(parts: Iterable[tuple[int, int, int]], max_rows: int, max_bytes: int) -> list[tuple[int, int]]:
    """Return consecutive parts, joined as far as the limits allow."""
    ranges: list[tuple[int, int]] = []
    rows = size = 0
    for start, end, part_size in parts:
        if ranges and rows + end - start <= max_rows and size + part_size <= max_bytes:
            ranges[-1] = (ranges[-1][0], end)
        else:
            ranges.append((start, end))
            rows = size = 0
        rows += end - start
        size += part_size
    return ranges
