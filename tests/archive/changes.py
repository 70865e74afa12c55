"""What may happen to the file of a sealed segment: other bytes, or other rows, under its name."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from weirpool.archive.parquet import footer_bytes

__all__ = ["OTHER_FILES", "Change", "changed_dictionaries", "changed_headers", "changed_rows"]

Change = Callable[[bytes, bytes], bytes | None]
"""Returns what is there instead of a file, which has a neighbour; None: nothing."""


def _rewritten(file: bytes, *, rows: int = 0) -> bytes:
    """Return a Parquet file with the same rows, without the last ones."""
    table = pq.read_table(io.BytesIO(file))
    sink = io.BytesIO()
    pq.write_table(table.slice(0, table.num_rows - rows), sink, write_page_checksum=True)
    return sink.getvalue()


def _flipped(file: bytes, at: int, bit: int = 0) -> bytes:
    content = bytearray(file)
    content[at] ^= 1 << bit
    return bytes(content)


OTHER_FILES: dict[str, Change] = {
    "missing": lambda file, neighbour: None,
    "empty": lambda file, neighbour: b"",
    "cut off at its end": lambda file, neighbour: file[:-100],
    "cut off at its beginning": lambda file, neighbour: file[100:],
    "longer": lambda file, neighbour: file + file[-footer_bytes(file) :],
    "its neighbour": lambda file, neighbour: neighbour,
    "another version": lambda file, neighbour: _rewritten(file),
    "fewer rows": lambda file, neighbour: _rewritten(file, rows=1),
    "a changed footer": lambda file, neighbour: _flipped(file, len(file) - footer_bytes(file) + 30),
    "junk": lambda file, neighbour: b"junk" * (len(file) // 4),
}
"""Changes that a file's size and footer show."""


def changed_rows(file: bytes) -> Iterator[bytes]:
    """Yield files with one changed bit that Parquet's readers return as other rows, without an error."""
    truth = pq.read_table(io.BytesIO(file))
    chance = random.Random(len(file))
    while True:
        changed = _flipped(file, chance.randrange(4, len(file) - footer_bytes(file)), chance.randrange(8))
        try:
            found = pq.read_table(io.BytesIO(changed))
        except (pa.ArrowException, OSError, ValueError):
            continue
        if not found.equals(truth):
            yield changed


def changed_dictionaries(file: bytes) -> Iterator[bytes]:
    """Yield files with a changed bit in each dictionary."""
    for start, end in _dictionaries(file):
        yield _flipped(file, (start + end) // 2 + 8)


def changed_headers(file: bytes) -> Iterator[bytes]:
    """Yield files with a changed bit in the header of the first page of each column, in turn."""
    starts = [start for start, _ in _dictionaries(file)] or [4]
    chance = random.Random(len(file))
    while True:
        for start in starts:
            yield _flipped(file, start + chance.randrange(16), chance.randrange(8))


def _dictionaries(file: bytes) -> list[tuple[int, int]]:
    """Return start and end of the dictionary pages."""
    metadata = pq.read_metadata(io.BytesIO(file))
    chunks = [
        metadata.row_group(group).column(column)
        for group in range(metadata.num_row_groups)
        for column in range(metadata.num_columns)
    ]
    return [(each.dictionary_page_offset, each.data_page_offset) for each in chunks if each.has_dictionary_page]
