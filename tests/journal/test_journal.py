from __future__ import annotations

import errno
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.journal.logs import SOURCE, append, items, numbers, write
from weirpool import DataLost, DiskFull, JournalMissing, LocalError
from weirpool.journal import Journal, JournalReader, JournalWriter
from weirpool.journal.encoder import encode
from weirpool.journal.format import Note
from weirpool.journal.layout import segment_position
from weirpool.journal.storage import LogFolder

SEGMENT_BYTES = 4_000


def test_a_journal_need_not_exist(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "absent")
    for look in (journal.sources, journal.verify, lambda: journal.reader(SOURCE)):
        with pytest.raises(JournalMissing):
            look()
    assert repr(journal) == f"Journal({str(tmp_path / 'absent')!r})"


def test_a_journal_is_a_folder_of_logs(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path))
    for source in ("b", "a"):
        with journal.writer(source, fsync=False, segment_bytes=1) as writer:
            append(writer, 3, 4)
    assert journal.sources() == ["a", "b"]
    assert numbers(journal.reader("a")) == list(range(7))
    assert journal.trim("a", 7, retain_bytes=0, reader="spark") == 3
    assert (journal.reader("a").first, journal.reader("b").first) == (3, 0)
    assert {source: report.rows for source, report in journal.verify().items()} == {"a": 4, "b": 7}
    assert list(journal.verify(["b"])) == ["b"]


def test_a_reader_that_is_forgotten_holds_nothing_up(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    write(tmp_path, 3, 4, segment_bytes=1)
    assert journal.trim(SOURCE, 0, reader="gone") == 0
    assert journal.trim(SOURCE, 7, retain_bytes=0) == 0
    journal.forget(SOURCE, "gone")
    assert journal.trim(SOURCE, 7, retain_bytes=0) == 3


def test_a_journal_elsewhere_is_only_read() -> None:
    journal = Journal("s3://bucket/journal")
    for use in (lambda: journal.trim(SOURCE, 0), lambda: journal.writer(SOURCE), lambda: journal.forget(SOURCE, "r")):
        with pytest.raises(LocalError, match="can only be read"):
            use()


@contextmanager
def room_for(size: int):
    """Let the disk take so many bytes, and no more."""
    pwrite, left = os.pwrite, [size]

    def full(fd: int, data: bytes, offset: int) -> int:
        if left[0] == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = pwrite(fd, data[: left[0]], offset)
        left[0] -= written
        return written

    with mock.patch.object(os, "pwrite", full):
        yield


class JournalMachine(RuleBasedStateMachine):
    """A log next to what it should hold, while everything happens to it that may."""

    @initialize()
    def begin(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="weirpool-"))
        self.journal = Journal(self.path)
        self.end = 0
        self.state: bytes | None = None
        self.gaps: list[tuple[int, str]] = []
        self.committed = 0
        self.open()
        self.reader = self.journal.reader(SOURCE)

    def open(self) -> None:
        self.writer: JournalWriter = self.journal.writer(SOURCE, segment_bytes=SEGMENT_BYTES, fsync=False)

    def teardown(self) -> None:
        if hasattr(self, "path"):
            self.writer.close()
            shutil.rmtree(self.path)

    @rule(count=st.integers(0, 40), state=st.none() | st.binary(max_size=8))
    def append(self, count: int, state: bytes | None) -> None:
        assert self.writer.append(items(self.end, count), "numbers", state) == self.end + count
        self.end += count
        self.state = self.state if state is None else state

    @rule(reason=st.text(max_size=20))
    def gap(self, reason: str) -> None:
        assert self.writer.append_gap(reason) == self.end
        self.gaps.append((self.end, reason))

    @rule(count=st.integers(1, 40), room=st.integers(0, 5_000))
    def append_to_a_disk_that_fills(self, count: int, room: int) -> None:
        with room_for(room):
            try:
                self.writer.append(items(self.end, count), "numbers", b"full")
            except DiskFull:
                return
        self.end += count
        self.state = b"full"

    @rule()
    def close_and_open(self) -> None:
        self.writer.close()
        self.open()

    @rule(count=st.integers(1, 40), share=st.floats(0, 1), behind=st.binary(max_size=4))
    def be_killed_while_writing(self, count: int, share: float, behind: bytes) -> None:
        self.writer.close()
        note = Note.blank(prev=self.head(), position=self.end, rows=count, time=0, state=b"killed")
        content = b"".join(encode(items(self.end, count), "numbers", note).chunks)
        written = content[: int(share * len(content))]
        segments = sorted(path for path in self.folder.iterdir() if segment_position(path.name) is not None)
        if segments:
            with open(segments[-1], "ab") as file:
                file.write(written + behind if written == content else written)
            if written == content:
                # Nobody was told of it, but it is whole: it counts.
                self.end += count
                self.state = b"killed"
        self.open()

    @rule(share=st.floats(0, 1), retain_rows=st.integers(0, 50))
    def trim(self, share: float, retain_rows: int) -> None:
        position = int(share * self.end)
        self.committed = max(self.committed, position)
        left = self.journal.trim(SOURCE, position, retain_rows=retain_rows, retain_bytes=0)
        assert left <= max(0, self.committed)
        self.writer.refresh()
        assert self.writer.used_bytes >= 0
        if self.committed == self.end:
            assert self.writer.used_bytes == 0

    @rule(first=st.floats(0, 1), last=st.floats(0, 1), fresh=st.booleans())
    def read(self, first: float, last: float, fresh: bool) -> None:
        start, end = sorted((int(first * self.end), int(last * self.end)))
        reader = JournalReader(self.path, SOURCE) if fresh else self.reader
        reader.refresh()
        if start < reader.first and start < end:
            with pytest.raises(DataLost):
                list(reader.read(start, end))
            start = min(reader.first, end)
        assert numbers(reader, start, end) == list(range(start, end))
        if start >= reader.first:
            parts = reader.split(start, end, max_rows=9)
            assert [position for part in parts for position in range(*part)] == list(range(start, end))

    def head(self) -> str:
        """Return the digest of the log's last batch."""
        mark = LogFolder.local(self.folder).mark()
        assert mark is not None
        return mark.head

    @property
    def folder(self) -> Path:
        return self.path / f"source={SOURCE}"

    @precondition(lambda self: hasattr(self, "path"))
    @invariant()
    def what_was_promised_is_there(self) -> None:
        assert (self.writer.position, self.writer.state) == (self.end, self.state)
        self.reader.refresh()
        assert self.reader.end == self.end
        assert self.reader.first <= self.committed
        found = [(gap.position, gap.reason) for gap in self.reader.gaps()]
        # Gaps go with the segments that hold them.
        assert found == self.gaps[len(self.gaps) - len(found) :]
        assert all(position <= self.reader.first for position, _ in self.gaps[: len(self.gaps) - len(found)])


TestJournalMachine = JournalMachine.TestCase
TestJournalMachine.settings = settings(max_examples=60, stateful_step_count=30)
