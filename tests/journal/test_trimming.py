"""Gaps outlive their segments; what goes when is in test_retention.py."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.journal.logs import SOURCE, append, segment, write
from weirpool import DiskFull, JournalCorrupt
from weirpool.journal import JournalReader, JournalWriter, gaps, trimming
from weirpool.journal.layout import GAPS, log_folder
from weirpool.journal.retention import trim
from weirpool.journal.trimming import delete_free


def with_gaps(path: Path, segments: int = 4) -> Path:
    """Write a log with a gap before and after each of its segments of 10 rows."""
    with JournalWriter.open(path, SOURCE, segment_bytes=1, fsync=False) as writer:
        for number in range(segments):
            writer.append_gap(f"gap {number}")
            append(writer, 10)
    return log_folder(path, SOURCE)


def reasons(path: Path) -> list[tuple[int, str]]:
    return [(gap.position, gap.reason) for gap in JournalReader(path, SOURCE).gaps()]


def test_gaps_outlive_their_segments(tmp_path: Path) -> None:
    folder = with_gaps(tmp_path)
    before = JournalReader(tmp_path, SOURCE).gaps()
    assert [(gap.position, gap.reason) for gap in before] == [(10 * n, f"gap {n}") for n in range(4)]
    for position in (10, 20, 25, 40):
        trim(folder, position, retain_bytes=0)
        assert JournalReader(tmp_path, SOURCE).gaps() == before
    assert JournalReader(tmp_path, SOURCE).first == 30
    # Ranges report each of them once.
    reader = JournalReader(tmp_path, SOURCE)
    assert [gap for start in range(0, 40, 5) for gap in reader.gaps(start, start + 5)] == before


@pytest.mark.parametrize("step", ["unlink", "replace"])
def test_a_crash_while_trimming_loses_no_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    folder = with_gaps(tmp_path)
    before = reasons(tmp_path)
    unlink, replace, left = Path.unlink, os.replace, 1

    def crash(*arguments: Any, **options: Any) -> Any:
        nonlocal left
        if arguments[0].name.endswith(".arrows") or step == "replace":
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
        return (unlink if step == "unlink" else replace)(*arguments, **options)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        if step == "unlink":
            patch.setattr(Path, "unlink", crash)
        else:
            left = 0
            patch.setattr(os, "replace", crash)
        trim(folder, 40, retain_bytes=0)
    assert reasons(tmp_path) == before
    trim(folder, 40, retain_bytes=0)
    assert (reasons(tmp_path), JournalReader(tmp_path, SOURCE).first) == (before, 30)


def test_no_segment_goes_before_its_gaps_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = with_gaps(tmp_path)
    before = reasons(tmp_path)

    def full(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(DiskFull):
        patch.setattr(gaps, "replace_file", full)
        trim(folder, 40, retain_bytes=0)
    assert (reasons(tmp_path), JournalReader(tmp_path, SOURCE).first) == (before, 0)


def test_segments_without_gaps_write_no_file(tmp_path: Path) -> None:
    folder = write(tmp_path, 10, 10, 10, segment_bytes=1)
    trim(folder, 30, retain_bytes=0)
    assert not (folder / GAPS).exists()


def test_a_damaged_segment_that_is_trimmed_is_a_gap(tmp_path: Path) -> None:
    folder = with_gaps(tmp_path)
    path = segment(folder, 10)
    path.write_bytes(bytes(path.stat().st_size))
    trim(folder, 40, retain_bytes=0)
    found = JournalReader(tmp_path, SOURCE).gaps()
    assert [gap.position for gap in found if not gap.number] == [0, 20, 30]
    # Found long after the collector was there: whoever reads gaps in order must not miss it.
    (late,) = (gap for gap in found if gap.number)
    assert late.position == 20 and late.reason.startswith("damaged when it was trimmed")


def test_who_trims_less_at_the_same_time_takes_nothing_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # THREATS 97: what was trimmed must not look as if somebody had taken it away.
    folder = write(tmp_path, 10, 10, 10, segment_bytes=1)
    add = gaps.add

    def meanwhile(*arguments: Any) -> None:
        monkeypatch.setattr(gaps, "add", add)
        # An operator does not wait for readers.
        delete_free(folder, 30, 0, 0)

    monkeypatch.setattr(gaps, "add", meanwhile)
    trim(folder, 10, reader="a", retain_bytes=0)
    assert JournalReader(tmp_path, SOURCE).first == 20
    with JournalWriter.open(tmp_path, SOURCE, fsync=False) as writer:
        assert writer.position == 30


def test_what_a_full_disk_kept_from_being_noted_is_noted_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # THREATS 97: what was trimmed must not look as if somebody had taken it away.
    folder = write(tmp_path, 10, 10, 10, segment_bytes=1)
    with monkeypatch.context() as full:
        full.setattr(trimming, "_note", lambda *arguments: False)
        trim(folder, 10, reader="a", retain_bytes=0)
    with pytest.raises(JournalCorrupt, match="positions 0 to 9"):
        JournalWriter.open(tmp_path, SOURCE, fsync=False)
    trim(folder, 10, reader="a", retain_bytes=0)
    with JournalWriter.open(tmp_path, SOURCE, fsync=False) as writer:
        assert writer.position == 30
