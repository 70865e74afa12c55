from __future__ import annotations

from datetime import UTC, datetime

import google_crc32c
import pyarrow as pa
import pytest

from penstock import JournalCorrupt
from penstock.journal.format import PREAMBLE, Note, encode, tabulate
from penstock.journal.gaps import Gap
from penstock.journal.index import Index
from tests.journal.logs import items


def content_of(*counts: int, gap_at: int = -1) -> pa.Buffer:
    """Return a segment with batches of so many rows, and a gap before one of them."""
    chunks, position = [PREAMBLE], 0
    for at, count in enumerate(counts):
        notes = [Note.blank(position=position, rows=0, time=5, state=None, gap="lost")] if at == gap_at else []
        notes.append(Note.blank(position=position, rows=count, time=5, state=None))
        for note in notes:
            header, body = encode(tabulate(items(position, note.rows), "numbers", position, 5), note)
            chunks += [header, body.to_pybytes()]
        position += count
    return pa.py_buffer(b"".join(chunks))


def index_of(content: pa.Buffer) -> Index:
    index = Index("file", 0)
    index.extend(content, content.size, None, whole=True)
    return index


def test_batches_are_found_as_they_come() -> None:
    whole = content_of(3, 2, 4)
    ends = [content_of(3).size, content_of(3, 2).size, whole.size]
    index = Index("file", 0)
    found = []
    for limit in range(len(PREAMBLE), whole.size + 1):
        index.extend(whole, limit, None, whole=False)
        found.append(index.end)
    assert [found[end - len(PREAMBLE)] for end in ends] == [3, 5, 9]
    assert [found[end - len(PREAMBLE) - 1] for end in ends] == [0, 3, 5]


def test_nothing_is_expected_before_the_first_bytes_are_durable() -> None:
    index = Index("file", 0)
    index.extend(pa.py_buffer(b"junk"), 0, None, whole=True)
    assert (index.offset, index.end) == (0, 0)


def test_where_rows_are() -> None:
    content = content_of(3, 2, 4)
    index = index_of(content)
    assert [index.locate(position) for position in (0, 2, 3, 4, 8)] == [(0, 3), (0, 3), (3, 5), (3, 5), (5, 9)]
    parts = list(index.parts(1, 6))
    assert [part[:2] for part in parts] == [(1, 3), (3, 5), (5, 6)]
    sizes = [content_of(3).size - len(PREAMBLE), content_of(3, 2).size - content_of(3).size]
    assert [part[2] for part in parts[:2]] == [sizes[0] * 2 // 3, sizes[1]]
    assert list(index.parts(4, 4)) == list(Index("file", 0).parts(0, 9)) == []


@pytest.mark.parametrize(("start", "end"), [(0, 9), (1, 8), (3, 5), (4, 4), (2, 3), (8, 9)])
def test_rows_are_cut_to_the_range(start: int, end: int) -> None:
    content = content_of(3, 2, 4)
    batches = [batch for batch, _ in index_of(content).batches(content, start, end)]
    assert [position for batch in batches for position in batch["position"].to_pylist()] == list(range(start, end))
    assert all(batch.num_rows for batch in batches)


def test_gaps_are_no_rows() -> None:
    content = content_of(3, 2, gap_at=1)
    index = index_of(content)
    assert index.gaps == [Gap(3, datetime(1970, 1, 1, 0, 0, 0, 5, UTC), "lost")]
    assert [part[:2] for part in index.parts(0, 5)] == [(0, 3), (3, 5)]


def test_damage_names_the_rows() -> None:
    octets = bytearray(content_of(3, 2, 4).to_pybytes())
    octets[content_of(3).size + 20] ^= 1
    damaged = pa.py_buffer(bytes(octets))
    with pytest.raises(JournalCorrupt, match=r"file: positions 3 to 8 are damaged \(the CRC32C of its header"):
        Index("file", 0).extend(damaged, damaged.size, 9, whole=True)
    with pytest.raises(JournalCorrupt, match="positions from 3 on"):
        Index("file", 0).extend(damaged, damaged.size, None, whole=True)
    with pytest.raises(JournalCorrupt, match=r"positions from 0 on are damaged .*schema"):
        Index("file", 0).extend(pa.py_buffer(b"junk"), 4, None, whole=True)


def test_a_batch_must_end_where_it_was_promised() -> None:
    content = content_of(3, 2)
    with pytest.raises(JournalCorrupt, match=r"positions 3 to 4 are damaged .*does not end"):
        Index("file", 0).extend(content, content.size - 1, 5, whole=True)


def test_a_damaged_body_is_found_when_it_is_read() -> None:
    clean = content_of(3, 2, 4)
    octets = bytearray(clean.to_pybytes())
    octets[content_of(3, 2).size - 9] ^= 1
    damaged = pa.py_buffer(bytes(octets))
    index = index_of(damaged)
    assert [batch.num_rows for batch, _ in index.batches(damaged, 0, 3)] == [3]
    with pytest.raises(JournalCorrupt, match=r"positions 3 to 4 are damaged \(the CRC32C of its body"):
        list(index.batches(damaged, 4, 9))


def test_a_file_that_was_cut_or_changed_meanwhile() -> None:
    content = content_of(3, 2)
    index = index_of(content)
    with pytest.raises(JournalCorrupt, match=r"positions 3 to 4 .*cut while"):
        list(index.batches(content.slice(0, content.size - 1), 0, 5))
    other = pa.py_buffer(content.to_pybytes()[:-200] + b"x" * 200)
    with pytest.raises(JournalCorrupt, match="positions 3 to 4"):
        list(index.batches(other, 3, 5))


def test_each_body_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    content = content_of(30, 2)
    index = Index("checked once", 0)
    index.extend(content, content.size, None, whole=True)
    sizes: list[int] = []

    def count(data: pa.Buffer) -> int:
        sizes.append(len(data))
        return int(crc(data))

    crc = google_crc32c.value
    monkeypatch.setattr(google_crc32c, "value", count)
    for _ in range(3):
        list(index.batches(content, 0, 32))
    bodies = [size for _, size in index.batches(content, 0, 32)]
    assert [sizes.count(size) for size in bodies] == [1, 1]
