from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from tests.journal.arrow import encode, tabulate
from tests.journal.logs import items
from weirpool import JournalCorrupt
from weirpool.journal import rows
from weirpool.journal.damage import Damage, Promise
from weirpool.journal.format import Note, genesis, preamble
from weirpool.journal.gaps import Gap
from weirpool.journal.index import Index

LOG = "5d9a9f0e-0d4e-4c57-9d0a-6d2c38b7f3a1"
PREAMBLE = preamble(LOG)


def content_of(*counts: int, gap_at: int = -1) -> pa.Buffer:
    """Return a segment with batches of so many rows, and a gap before one of them."""
    chunks, position, prev = [PREAMBLE], 0, genesis(LOG)
    for at, count in enumerate(counts):
        kinds: list[tuple[int, str | None]] = [(0, "lost")] if at == gap_at else []
        for size, gap in [*kinds, (count, None)]:
            note = Note.blank(prev=prev, position=position, rows=size, time=5, state=None, gap=gap)
            header, body, prev = encode(tabulate(items(position, size), "numbers", position, 5), note)
            chunks += [header, body]
        position += count
    return pa.py_buffer(b"".join(chunks))


def index_of(content: pa.Buffer, end: int | None = None) -> Index:
    index = Index("file", 0, LOG)
    index.extend(content, Promise(size=content.size) if end is None else Promise(end, size=content.size))
    return index


def refuse(first: int, end: int) -> bool:
    """Accept no loss."""
    return False


def rows_of(index: Index, content: pa.Buffer, start: int, end: int) -> list[int]:
    batches = [batch for batch, _ in index.batches(content, start, end, refuse)]
    assert all(batch.num_rows for batch in batches)
    return [position for batch in batches for position in batch["position"].to_pylist()]


def test_batches_are_found_as_they_come() -> None:
    whole = content_of(3, 2, 4)
    ends = [content_of(3).size, content_of(3, 2).size, whole.size]
    index = Index("file", 0, LOG)
    found = []
    for limit in range(whole.size + 1):
        index.extend(whole.slice(0, limit), Promise())
        found.append(index.end)
    assert [found[end] for end in ends] == [3, 5, 9]
    assert [found[end - 1] for end in ends] == [0, 3, 5]


def test_nothing_is_expected_before_the_first_bytes_are_durable() -> None:
    index = Index("file", 0, LOG)
    index.extend(pa.py_buffer(b"junk"), Promise(0, genesis(LOG), 0))
    assert (index.offset, index.end, index.damage) == (0, 0, [])


def test_where_rows_are() -> None:
    content = content_of(3, 2, 4)
    index = index_of(content)
    assert [index.locate(position) for position in (0, 2, 3, 4, 8)] == [(0, 3), (0, 3), (3, 5), (3, 5), (5, 9)]
    parts = list(index.parts(1, 6))
    assert [part[:2] for part in parts] == [(1, 3), (3, 5), (5, 6)]
    sizes = [content_of(3).size - len(PREAMBLE), content_of(3, 2).size - content_of(3).size]
    assert [part[2] for part in parts[:2]] == [sizes[0] * 2 // 3, sizes[1]]
    assert list(index.parts(4, 4)) == list(Index("file", 0, LOG).parts(0, 9)) == []


@pytest.mark.parametrize(("start", "end"), [(0, 9), (1, 8), (3, 5), (4, 4), (2, 3), (8, 9)])
def test_rows_are_cut_to_the_range(start: int, end: int) -> None:
    content = content_of(3, 2, 4)
    assert rows_of(index_of(content), content, start, end) == list(range(start, end))


def test_gaps_are_no_rows() -> None:
    content = content_of(3, 2, gap_at=1)
    index = index_of(content)
    assert index.gaps == [Gap(3, datetime(1970, 1, 1, 0, 0, 0, 5, UTC), "lost")]
    assert [part[:2] for part in index.parts(0, 5)] == [(0, 3), (3, 5)]


def test_damage_names_the_rows_of_one_batch() -> None:
    damaged_bytes = bytearray(content_of(3, 2, 4).to_pybytes())
    damaged_bytes[content_of(3).size + 20] ^= 1
    damaged = pa.py_buffer(bytes(damaged_bytes))
    for end in (9, None):
        index = index_of(damaged, end)
        assert index.damage == [Damage(3, 5, "the checksum of its header does not match")]
        assert rows_of(index, damaged, 0, 3) == [0, 1, 2]
        assert rows_of(index, damaged, 5, 9) == [5, 6, 7, 8]
        with pytest.raises(JournalCorrupt, match=r"file: positions 3 to 4 are damaged \(the checksum of its header"):
            rows_of(index, damaged, 0, 9)


def test_what_is_accepted_is_passed_over() -> None:
    damaged_bytes = bytearray(content_of(3, 2, 4).to_pybytes())
    damaged_bytes[content_of(3).size + 20] ^= 1
    damaged_bytes[-9] ^= 1
    damaged = pa.py_buffer(bytes(damaged_bytes))
    asked: list[tuple[int, int]] = []

    def accepted(first: int, end: int) -> bool:
        asked.append((first, end))
        return True

    batches = [batch for batch, _ in index_of(damaged, 9).batches(damaged, 0, 9, accepted)]
    assert [batch.num_rows for batch in batches] == [3]
    assert asked == [(3, 5), (5, 9)]


def test_what_is_no_segment_has_none_of_its_rows() -> None:
    index = index_of(pa.py_buffer(b"junk" * 20), 5)
    assert index.damage == [Damage(0, 5, "it does not begin with the schema of a journal")]
    assert (index.end, index.locate(3)) == (5, (0, 5))


def test_a_batch_must_end_where_it_was_promised() -> None:
    # THREATS 97
    content = content_of(3, 2)
    for size in range(content_of(3).size, content.size):
        index = Index("file", 0, LOG)
        index.extend(content.slice(0, size), Promise(5, index_of(content).head, content.size))
        assert [(damage.first, damage.end) for damage in index.damage] == [(3, 5)]
        assert rows_of(index, content, 0, 3) == [0, 1, 2]


def test_a_damaged_body_is_found_when_it_is_read() -> None:
    clean = content_of(3, 2, 4)
    damaged_bytes = bytearray(clean.to_pybytes())
    damaged_bytes[content_of(3, 2).size - 9] ^= 1
    damaged = pa.py_buffer(bytes(damaged_bytes))
    index = index_of(damaged)
    assert rows_of(index, damaged, 0, 3) == [0, 1, 2]
    with pytest.raises(JournalCorrupt, match=r"positions 3 to 4 are damaged \(the checksum of its body"):
        rows_of(index, damaged, 4, 9)


def test_a_file_that_was_cut_or_changed_meanwhile() -> None:
    content = content_of(3, 2)
    index = index_of(content)
    with pytest.raises(JournalCorrupt, match=r"positions 3 to 4 .*cut while"):
        rows_of(index, content.slice(0, content.size - 1), 0, 5)
    other = pa.py_buffer(content.to_pybytes()[:-200] + b"x" * 200)
    with pytest.raises(JournalCorrupt, match="positions 3 to 4"):
        rows_of(index, other, 3, 5)


def test_each_body_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    content = content_of(30, 2)
    index = index_of(content)
    checked: list[int] = []
    check = rows.check

    def count(message: pa.Buffer, header_bytes: int, rows: int, time: int, checksum: bytes) -> pa.RecordBatch:
        checked.append(rows)
        return check(message, header_bytes, rows, time, checksum)

    monkeypatch.setattr("weirpool.journal.index.check", count)
    for _ in range(3):
        assert rows_of(index, content, 0, 32) == list(range(32))
    assert checked == [30, 2]
