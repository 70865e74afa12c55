from __future__ import annotations

import errno
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tests.journal.logs import SOURCE, all_numbers, append, items, segment, write
from tests.missing import need
from weirpool import DiskFull, JournalError, JournalLocked, LocalError
from weirpool.journal import Journal, JournalReader, JournalWriter
from weirpool.journal.layout import log_folder
from weirpool.journal.mark import MARK_BYTES
from weirpool.journal.storage import LogFolder


def test_appended_rows_are_there_when_reopened(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, SOURCE) as writer:
        assert (writer.position, writer.state) == (0, None)
        assert writer.append(items(0, 10), "numbers", b"one") == 10
        assert writer.append(items(10, 5), "numbers", b"two") == 15
        assert writer.append(items(15, 1), "numbers") == 16
    with JournalWriter.open(tmp_path, SOURCE) as writer:
        assert (writer.position, writer.state) == (16, b"two")
        assert append(writer, 4) == 20
    assert all_numbers(tmp_path) == list(range(20))


def test_rows_carry_time_and_stream(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, SOURCE, clock=lambda: 1_700_000_000.25) as writer:
        writer.append(items(0, 1), "quotes.live")
    (batch,) = JournalReader(tmp_path, SOURCE).read(0, 1)
    assert batch["stream"].to_pylist() == ["quotes.live"]
    assert [time.timestamp() for time in batch["time"].to_pylist()] == [1_700_000_000.25]


def test_an_empty_batch_records_a_state(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, SOURCE) as writer:
        assert writer.append(items(0, 0), "numbers", b"begun") == 0
    with JournalWriter.open(tmp_path, SOURCE) as writer:
        assert (writer.position, writer.state) == (0, b"begun")


def test_a_gap_has_a_position_and_a_state(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, SOURCE) as writer:
        append(writer, 3)
        assert writer.append_gap("x" * 5_000, b"new session") == 3
    with JournalWriter.open(tmp_path, SOURCE) as writer:
        assert (writer.position, writer.state) == (3, b"new session")
    (gap,) = JournalReader(tmp_path, SOURCE).gaps()
    assert (gap.position, gap.reason) == (3, "x" * 1_000)


def test_append_returns_when_the_rows_are_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync, seen = os.fsync, []

    def watch(fd: int) -> None:
        seen.append(JournalReader(tmp_path, SOURCE).end)
        fsync(fd)

    with JournalWriter.open(tmp_path, SOURCE) as writer:
        append(writer, 1)
        monkeypatch.setattr(os, "fsync", watch)
        append(writer, 1)
        # While the disk is at it nobody can see the row.
        assert seen == [1]
        assert JournalReader(tmp_path, SOURCE).end == 2


def test_without_fsync_nothing_waits_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", refuse)
    assert all_numbers(write(tmp_path, 3, 4, segment_bytes=1).parent) == list(range(7))


def test_segments_roll(tmp_path: Path) -> None:
    folder = write(tmp_path, *[10] * 20, segment_bytes=4_000)
    sizes = [path.stat().st_size for path in sorted(folder.glob("*.arrows"))]
    assert len(sizes) > 3
    assert all(size <= 4_000 for size in sizes)
    with JournalWriter.open(tmp_path, SOURCE, segment_bytes=4_000) as writer:
        writer.append(items(200, 500), "numbers")
    # A batch that is larger than a segment has one of its own.
    assert segment(folder, 200).stat().st_size > 4_000
    assert all_numbers(tmp_path) == list(range(700))


def test_a_segment_without_rows_is_not_left(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, SOURCE, segment_bytes=1) as writer:
        for _ in range(3):
            writer.append_gap("lost")
        append(writer, 2, 2)
    assert len(JournalReader(tmp_path, SOURCE).segments()) == 2
    assert len(JournalReader(tmp_path, SOURCE).gaps()) == 3


def test_the_budget_is_used_up_and_freed_by_commits(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with journal.writer(SOURCE, budget_bytes=20_000, fsync=False) as writer:
        assert (writer.used_bytes, writer.free_bytes, writer.room()) == (0, 20_000, True)
        while writer.room():
            append(writer, 20)
        assert writer.free_bytes == 0
        assert 20_000 <= writer.used_bytes < 22_000
        # Rows that have been received are taken all the same.
        append(writer, 20)
        all_bytes = writer.used_bytes
        journal.trim(SOURCE, writer.position // 2, reader="fast")
        journal.trim(SOURCE, writer.position // 4, reader="slow")
        assert not writer.room()
        writer.refresh()
        assert writer.room()
        assert writer.used_bytes == pytest.approx(all_bytes * 3 / 4, rel=0.05)
        journal.trim(SOURCE, writer.position, reader="fast", retain_bytes=0)
        journal.trim(SOURCE, writer.position, reader="slow", retain_bytes=0)
        writer.refresh()
        assert (writer.used_bytes, writer.free_bytes) == (0, 20_000)
        disk = sum(path.stat().st_size for path in (tmp_path / "source=s").glob("*.arrows"))
        assert disk <= 20_000 // 4
        used = writer.position
    with journal.writer(SOURCE, budget_bytes=20_000, fsync=False) as writer:
        assert (writer.position, writer.used_bytes) == (used, 0)


def test_a_second_writer_is_kept_out(tmp_path: Path) -> None:
    # THREATS 80
    with JournalWriter.open(tmp_path, SOURCE) as writer:
        append(writer, 1)
        with pytest.raises(JournalLocked, match=f"process {os.getpid()} on"):
            JournalWriter.open(tmp_path, SOURCE)
        JournalWriter.open(tmp_path, "another").close()
        append(writer, 1)
    JournalWriter.open(tmp_path, SOURCE).close()
    assert all_numbers(tmp_path) == [0, 1]


def _is_refused(writer: JournalWriter) -> bool:
    try:
        with writer:
            append(writer, 1)
    except JournalError as error:
        return "belongs to the process that was forked" in str(error)
    return False


def test_a_forked_process_neither_writes_nor_takes_the_lock_from_its_parent(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, SOURCE) as writer:
        append(writer, 1)
        forking, forked = threading.Event(), threading.Event()
        tip = writer._opened()

        def hold() -> None:
            # What another thread holds at a fork is held in the child forever.
            with tip._lock:
                forking.set()
                forked.wait()

        holder = threading.Thread(target=hold)
        holder.start()
        forking.wait()
        child = os.fork()
        if not child:
            signal.alarm(60)
            os._exit(0 if _is_refused(writer) else 1)
        status = os.waitpid(child, 0)[1]
        forked.set()
        holder.join()
        assert os.waitstatus_to_exitcode(status) == 0
        with pytest.raises(JournalLocked):
            JournalWriter.open(tmp_path, SOURCE)
        append(writer, 1)
    JournalWriter.open(tmp_path, SOURCE).close()
    assert all_numbers(tmp_path) == [0, 1]


def test_a_full_disk_is_an_error_and_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # THREATS 80: whichever call finds that there is no room, and however much it has written by then.
    pwrite = os.pwrite
    with JournalWriter.open(tmp_path, SOURCE, segment_bytes=4_000) as writer:
        append(writer, 5)
        for room in range(0, 2_000, 37):
            left = [room]

            def full(fd: int, data: bytes, offset: int, left: list[int] = left) -> int:
                if left[0] == 0:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                written = pwrite(fd, data[: left[0]], offset)
                left[0] -= written
                return written

            before, state = writer.position, writer.state
            with monkeypatch.context() as patch:
                patch.setattr(os, "pwrite", full)
                try:
                    append(writer, 5)
                except DiskFull as error:
                    assert "cannot store a batch of" in str(error)
                    assert (writer.position, writer.state) == (before, state)
            assert all_numbers(tmp_path) == list(range(writer.position))
            append(writer, 1)
            assert all_numbers(tmp_path) == list(range(writer.position))
    with JournalWriter.open(tmp_path, SOURCE) as writer:
        assert all_numbers(tmp_path) == list(range(writer.position))


@pytest.mark.parametrize("segment_bytes", [1, 1 << 20])
def test_a_batch_that_cannot_be_shown_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, segment_bytes: int
) -> None:
    pwrite, mark_bytes = os.pwrite, MARK_BYTES

    def refuse(fd: int, data: bytes, offset: int) -> int:
        if len(data) == mark_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return pwrite(fd, data, offset)

    def files() -> dict[str, int]:
        return {path.name: path.stat().st_size for path in (tmp_path / "source=s").iterdir()}

    with JournalWriter.open(tmp_path, SOURCE, segment_bytes=segment_bytes) as writer:
        append(writer, 2)
        before = files()
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", refuse)
            with pytest.raises(DiskFull):
                append(writer, 2)
        assert files() == before
        assert append(writer, 2) == 4
    assert all_numbers(tmp_path) == list(range(4))


def test_a_disk_that_fails_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    for segment_bytes in (1, 1 << 20):
        with JournalWriter.open(tmp_path, SOURCE, segment_bytes=segment_bytes) as writer:
            append(writer, 2)
            with monkeypatch.context() as patch:
                patch.setattr(os, "fsync", refuse)
                with pytest.raises(JournalError, match=r"cannot store a batch .*Input/output error"):
                    append(writer, 2)
            append(writer, 2)
    assert all_numbers(tmp_path) == list(range(8))


def test_an_interrupt_leaves_nothing_half_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(fd: int) -> None:
        raise KeyboardInterrupt

    with JournalWriter.open(tmp_path, SOURCE) as writer:
        append(writer, 2)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", interrupt)
            with pytest.raises(KeyboardInterrupt):
                append(writer, 2)
        assert append(writer, 2) == 4
    assert all_numbers(tmp_path) == list(range(4))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 256 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)]
    need("mount")
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a disk")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_disk_that_is_really_full(small_disk: Path) -> None:
    # THREATS 80
    journal = Journal(small_disk)
    with journal.writer(SOURCE, budget_bytes=1 << 17) as writer:
        with pytest.raises(DiskFull) as caught:
            while True:
                append(writer, 100, width=100)
        assert "\n" not in str(caught.value)
        at = writer.position
        assert at > 500
        with pytest.raises(DiskFull):
            append(writer, 100, width=100)
        assert all_numbers(small_disk) == list(range(at))
        # That a reader commits is enough, although its commit is a file too.
        journal.trim(SOURCE, at, retain_bytes=0)
        assert append(writer, 100) == at + 100
    assert all_numbers(small_disk)[-1] == at + 99


def test_wrong_use(tmp_path: Path) -> None:
    for options in ({"budget_bytes": 0}, {"segment_bytes": 0}):
        with pytest.raises(LocalError, match="must be at least 1"):
            JournalWriter.open(tmp_path, SOURCE, **options)
    with pytest.raises(LocalError, match="can only be read"):
        JournalWriter.open("s3://bucket/journal", SOURCE)
    with pytest.raises(LocalError, match="cannot name a source"):
        JournalWriter.open(tmp_path, "../elsewhere")
    assert os.listdir(tmp_path) == []
    with JournalWriter.open(tmp_path, SOURCE) as writer:
        with pytest.raises(LocalError, match="columns data and metadata"):
            writer.append(items(0, 1).select(["data"]), "numbers")
        with pytest.raises(LocalError, match="the limit is 65536"):
            writer.append(items(0, 1), "numbers", bytes(65_537))
        writer.append(items(0, 1), "numbers", bytes(65_536))
    writer.close()
    with pytest.raises(JournalError, match="the writer is closed"):
        append(writer, 1)
    assert all_numbers(tmp_path) == [0]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JournalError, match="cannot be created"):
        JournalWriter.open(tmp_path / "file", SOURCE)


def test_large_items(tmp_path: Path) -> None:
    large = pa.record_batch({"data": pa.array([b"x" * 3_000_000], pa.binary()), "metadata": pa.nulls(1, pa.binary())})
    with JournalWriter.open(tmp_path, SOURCE, segment_bytes=1 << 20) as writer:
        writer.append(large, "numbers")
        writer.append(large, "numbers")
    sizes = [len(data) for batch in JournalReader(tmp_path, SOURCE).read(0, 2) for data in batch["data"].to_pylist()]
    assert sizes == [3_000_000] * 2


def test_old_segments_are_continued_in_another(tmp_path: Path) -> None:
    now = 1_000.0
    with JournalWriter.open(tmp_path, SOURCE, segment_seconds=60, fsync=False, clock=lambda: now) as writer:
        append(writer, 1, 1)
        now += 59.9
        append(writer, 1)
        now += 0.1
        append(writer, 1)
        now += 30
        append(writer, 1)
        # A record without rows, such as a renewed checkpoint, is enough for a feed that has become quiet.
        now += 30
        append(writer, 0)
        now += 60
        append(writer, 0, 2)
    assert [first for first, _ in LogFolder.local(log_folder(tmp_path, SOURCE)).segments()] == [0, 3, 5]
    assert all_numbers(tmp_path) == list(range(7))


def test_a_clock_that_goes_back_keeps_no_segment_open(tmp_path: Path) -> None:
    # THREATS 114: it was a day ahead when the segment was begun.
    now = 86_400.0
    with JournalWriter.open(tmp_path, SOURCE, segment_seconds=60, fsync=False, clock=lambda: now) as writer:
        append(writer, 1)
        now = 1_000.0
        assert not writer.is_old()
        now += 61
        assert writer.is_old()
        append(writer, 1)
    assert [first for first, _ in LogFolder.local(log_folder(tmp_path, SOURCE)).segments()] == [0, 1]
