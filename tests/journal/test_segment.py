from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from weirpool.journal.segment import SegmentFile


def failing(calls: int) -> Callable[..., int]:
    """Return a function that works some times, and then has no room."""
    pwrite, left = os.pwrite, [calls]

    def call(fd: int, data: bytes, offset: int) -> int:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        return pwrite(fd, data, offset)

    return call


def refuse(*args: object) -> None:
    raise OSError(5, "Input/output error")


@pytest.fixture
def segment(tmp_path: Path) -> SegmentFile:
    return SegmentFile.create(tmp_path / "segment", [b"head", b"first"], fsync=True)


def test_a_segment_has_its_name_when_its_first_bytes_are_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[list[str]] = []
    fsync = os.fsync

    def watch(fd: int) -> None:
        synced.append(sorted(os.listdir(tmp_path)))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", watch)
    segment = SegmentFile.create(tmp_path / "segment", [b"head"], fsync=True)
    segment.close()
    # The file before it is renamed, the folder after.
    assert synced == [["segment.tmp"], ["segment"]]


@pytest.mark.parametrize("step", ["pwrite", "fsync", "rename"])
def test_a_segment_that_cannot_be_made_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setattr(os, step, refuse)
    with pytest.raises(OSError, match="Input/output"):
        SegmentFile.create(tmp_path / "segment", [b"head"], fsync=True)
    assert os.listdir(tmp_path) == []


def test_a_name_that_is_not_durable_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync, calls = os.fsync, []

    def second_fails(fd: int) -> None:
        calls.append(fd)
        if len(calls) == 2:
            refuse()
        fsync(fd)

    monkeypatch.setattr(os, "fsync", second_fails)
    with pytest.raises(OSError, match="Input/output"):
        SegmentFile.create(tmp_path / "segment", [b"head"], fsync=True)
    assert os.listdir(tmp_path) == []


def test_appending(segment: SegmentFile) -> None:
    segment.append([b"sec", b"ond"])
    assert segment.size == 15
    segment.close()
    assert segment.path.read_bytes() == b"headfirstsecond"


@pytest.mark.parametrize("step", ["pwrite", "fsync"])
def test_what_fails_half_way_is_cut_off(segment: SegmentFile, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, step, failing(1) if step == "pwrite" else refuse)
        with pytest.raises(OSError):
            segment.append([b"sec", b"ond"])
    assert segment.path.read_bytes() == b"headfirst"
    segment.append([b"2nd"])
    segment.close()
    assert segment.path.read_bytes() == b"headfirst2nd"


def test_what_cannot_be_cut_now_is_cut_next_time(segment: SegmentFile, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", failing(1))
        patch.setattr(os, "ftruncate", refuse)
        with pytest.raises(OSError, match="No space"):
            segment.append([b"second", b"!"])
        assert segment.path.read_bytes() == b"headfirstsecond"
        with pytest.raises(OSError, match="Input/output"):
            segment.append([b"2nd"])
    segment.append([b"2nd"])
    segment.close()
    assert segment.path.read_bytes() == b"headfirst2nd"


def test_opening_again_cuts_what_is_torn(segment: SegmentFile) -> None:
    segment.append([b"torn"])
    segment.close()
    again = SegmentFile.reopen(segment.path, 9, fsync=True)
    again.append([b"!"])
    again.discard()
    assert not segment.path.exists()
    with pytest.raises(FileNotFoundError):
        SegmentFile.reopen(segment.path, 9, fsync=True)


def test_without_fsync_nothing_waits_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", refuse)
    segment = SegmentFile.create(tmp_path / "segment", [b"head"], fsync=False)
    segment.append([b"first"])
    segment.close()
    SegmentFile.reopen(segment.path, 4, fsync=False).close()
    with pytest.raises(OSError, match="Input/output"):
        SegmentFile.reopen(segment.path, 4, fsync=True)
    assert segment.path.read_bytes() == b"head"
