from __future__ import annotations

from pathlib import Path

import pytest

from penstock import JournalCorrupt
from penstock.journal.layout import DURABLE, GAPS, TRIMMED
from penstock.journal.mended import Mended
from penstock.journal.storage import LogFolder
from tests.journal.logs import segment, uuid, write


def test_segments_bear_their_new_names(tmp_path: Path) -> None:
    folder = write(tmp_path, 3, 2, 4, segment_bytes=1)
    log = LogFolder.local(folder)
    mended = Mended(log, {0: 3, 3: 0, 5: None}, [])
    assert [first for first, _ in mended.segments()] == [0, 3]
    for first, name in ((0, 3), (3, 0)):
        content = mended.content(first)
        assert content is not None
        assert bytes(content) == segment(folder, name).read_bytes()
    assert mended.content(5) is None
    assert mended.mark() == log.mark()


def test_small_files_are_gone(tmp_path: Path) -> None:
    folder = write(tmp_path, 3)
    for name in (GAPS, TRIMMED):
        (folder / name).write_bytes(b"junk")
    mended = Mended(LogFolder.local(folder), {}, [GAPS, TRIMMED, DURABLE])
    assert (mended.kept_gaps(), mended.trimmed(uuid(folder))) == ([], 0)
    with pytest.raises(JournalCorrupt, match="names a batch that no segment of this log has"):
        mended.mark()
