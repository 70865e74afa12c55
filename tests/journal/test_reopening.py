from __future__ import annotations

from pathlib import Path

import pytest

from tests.journal.logs import segment, uuid, write
from weirpool.errors import JournalCorrupt, JournalMismatch
from weirpool.journal.identity import Request
from weirpool.journal.layout import DURABLE, IDENTITY, Extent, segment_name
from weirpool.journal.reopening import complete_segments, identified, recovered
from weirpool.journal.segment import TEMPORARY


def test_a_new_log_gets_an_identity_once(tmp_path: Path) -> None:
    first = identified(tmp_path, Request("r"), fsync=False)
    assert identified(tmp_path, Request("r"), fsync=False) == identified(tmp_path, None, fsync=False) == first
    with pytest.raises(JournalMismatch, match="a request with"):
        identified(tmp_path, Request("other"), fsync=False)


def test_segments_without_an_identity_are_refused(tmp_path: Path) -> None:
    folder = write(tmp_path, 3)
    (folder / IDENTITY).unlink()
    with pytest.raises(JournalCorrupt, match="has segments but no"):
        identified(folder, None, fsync=False)


def test_damage_is_accepted_if_that_is_wanted(tmp_path: Path) -> None:
    folder = write(tmp_path, 3, 3)
    log = uuid(folder)
    segment(folder).write_bytes(segment(folder).read_bytes()[:-100])
    with pytest.raises(JournalCorrupt):
        recovered(folder, log, 0.0, accept_loss=False)
    assert recovered(folder, log, 0.0, accept_loss=True).position == 6


def test_what_a_killed_writer_leaves_is_removed(tmp_path: Path) -> None:
    folder = write(tmp_path, 5, 5, 5, segment_bytes=1)
    sizes = [path.stat().st_size for path in sorted(folder.glob("*.arrows"))]
    (folder / f"{segment_name(15)}{TEMPORARY}").write_bytes(b"not complete")
    (folder / segment_name(15)).write_bytes(b"")
    tail = recovered(folder, uuid(folder), 0.0, accept_loss=False)
    assert complete_segments(folder, tail) == [Extent(0, 5, sizes[0]), Extent(5, 10, sizes[1])]
    assert (tail.first, tail.position) == (10, 15)
    assert len(list(folder.glob("*.arrows"))) == 3 and not list(folder.glob(f"*{TEMPORARY}"))
    assert (folder / DURABLE).exists()
