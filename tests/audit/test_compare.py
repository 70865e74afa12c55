from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from tests.journal.logs import SOURCE, append, items
from weirpool.audit import compare as compare_module
from weirpool.audit import digest as digest_module
from weirpool.audit.compare import Audit, compare
from weirpool.audit.digest import Digests
from weirpool.audit.sent import Sent, State
from weirpool.journal import Journal, JournalReader, JournalWriter

BLOCK = 4


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest_module, "BLOCK_ITEMS", BLOCK)
    monkeypatch.setattr(compare_module, "BLOCK_ITEMS", BLOCK)


def write(path: Path, *counts: int) -> JournalReader:
    with JournalWriter.open(path, SOURCE, segment_bytes=1, fsync=False) as writer:
        append(writer, *counts)
    return JournalReader(path, SOURCE)


def sent(*batches: pa.RecordBatch) -> Sent:
    digests = Digests()
    for batch in batches:
        digests.add(batch.column("data"), batch.column("metadata"))
    blocks = [each.hex() for each in digests.blocks]
    return Sent(datetime.now(UTC), State.OPEN, digests.count, digests.first, blocks, digests.rest.hex())


def test_a_log_agrees_with_what_was_sent(tmp_path: Path) -> None:
    log = write(tmp_path, 3, 2, 5)
    found = compare(log, 0, sent(items(0, 10)))
    assert found == Audit(0, 10, 10, 10, [])
    assert (found.agrees, found.waiting) == (True, 0)
    assert str(found) == "10 of 10 items are in the journal as they were sent"


def test_items_on_their_way_are_told(tmp_path: Path) -> None:
    found = compare(write(tmp_path, 7), 0, sent(items(0, 10)))
    # Digests are those of blocks of four items: of the second block, three items are there.
    assert (found.compared, found.partial, found.unknown, found.waiting) == (4, 3, 0, 3)
    assert found.agrees
    assert str(found) == (
        "4 of 10 items are in the journal as they were sent; the last 3 rows are compared when the rest of their block "
        "is there; 3 more items are on their way"
    )


def test_a_log_may_have_more_meanwhile(tmp_path: Path) -> None:
    found = compare(write(tmp_path, 3, 9), 0, sent(items(0, 10)))
    assert (found.compared, found.waiting, found.agrees) == (10, 0, True)


def test_a_lost_item_is_found(tmp_path: Path) -> None:
    log = write(tmp_path, 12)
    lost = [items(0, 5), items(6, 7)]
    found = compare(log, 0, sent(*lost))
    assert (found.agrees, found.differing) == (False, [(4, 12)])
    assert str(found) == "positions 4 to 11 differ from what the publisher sent"


def test_an_item_twice_is_found(tmp_path: Path) -> None:
    log = write(tmp_path, 12)
    assert compare(log, 0, sent(items(0, 3), items(2, 9))).differing == [(0, 12)]


def test_later_streams_start_later(tmp_path: Path) -> None:
    log = write(tmp_path, 5, 6)
    found = compare(log, 5, sent(items(5, 6)))
    assert (found.agrees, found.compared, found.rows) == (True, 6, 6)


def test_trimmed_rows_are_not_compared(tmp_path: Path) -> None:
    write(tmp_path, 3, 3, 6)
    Journal(tmp_path).trim(SOURCE, 6, retain_bytes=0)
    found = compare(JournalReader(tmp_path, SOURCE), 0, sent(items(0, 12)))
    assert (found.agrees, found.compared) == (True, 4)
    assert "8 cannot be compared" in str(found)


def test_rows_that_were_not_sent_are_found(tmp_path: Path) -> None:
    log = write(tmp_path, 12)
    found = compare(log, 0, sent(items(0, 10)), 12)
    assert (found.surplus, found.agrees) == (2, False)
    assert str(found) == "the log has 2 more rows of the stream than the publisher has sent"
    # Rows that arrived after the publisher was asked.
    assert compare(log, 0, sent(items(0, 10)), 10).agrees


def test_stream_of_another_client_that_has_just_begun_does_not_agree(tmp_path: Path) -> None:
    log = write(tmp_path, 12)
    assert not compare(log, 0, sent(), 12).agrees
