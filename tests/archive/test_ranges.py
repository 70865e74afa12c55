from __future__ import annotations

import io
from typing import Any

import pytest

from tests.objects.stores import numbers
from weirpool.archive import ranges
from weirpool.archive.ranges import RangeFile
from weirpool.errors import JournalCorrupt
from weirpool.objects import open_store

CONTENT = bytes(range(100))


def opened(monkeypatch: pytest.MonkeyPatch, size: int = 100) -> tuple[RangeFile, list[Any]]:
    """Return a file, and the list of the ranges that are asked for."""
    store = open_store(f"memory://ranges-{next(numbers)}")
    store.put("a", CONTENT)
    asked: list[Any] = []
    get = store.get
    monkeypatch.setattr(store, "get", lambda *arguments: asked.append(arguments[1:]) or get(*arguments))
    monkeypatch.setattr(ranges, "_HOLE_BYTES", 3)
    return RangeFile(store, "a", size, CONTENT[-20:]), asked


def test_ranges_are_loaded_by_few_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    file, asked = opened(monkeypatch)
    file.load([(30, 5), (10, 5), (18, 2), (50, 1)])
    assert asked == [(10, 10), (30, 5), (50, 1)]
    assert bytes(file.part(18, 2)) == CONTENT[18:20] and bytes(file.part(30, 5)) == CONTENT[30:35]
    assert file.readable() and file.seekable()
    assert file.seek(10) == 10 and file.read(5) == CONTENT[10:15] and file.tell() == 15
    assert file.seek(2, io.SEEK_CUR) == 17 and file.read(3) == CONTENT[17:20]
    buffer = bytearray(4)
    file.seek(30)
    assert file.readinto(buffer) == 4 and buffer == CONTENT[30:34]


def test_the_end_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    file, asked = opened(monkeypatch)
    file.seek(-15, io.SEEK_END)
    assert file.read(10) == CONTENT[85:95] and file.read() == CONTENT[95:] and file.read(1) == b""
    file.load([(0, 1)])
    assert bytes(file.part(99, 1)) == b"c" and asked == [(0, 1)]


@pytest.mark.parametrize(("start", "size"), [(9, 2), (14, 2), (40, 1), (0, 1), (79, 2)])
def test_what_was_not_loaded_is_not_read(monkeypatch: pytest.MonkeyPatch, start: int, size: int) -> None:
    file, asked = opened(monkeypatch)
    file.load([(10, 5)])
    with pytest.raises(OSError, match="were not read"):
        file.part(start, size)
    assert len(asked) == 1


def test_an_object_that_is_cut_off_is_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    file, _ = opened(monkeypatch, size=200)
    with pytest.raises(JournalCorrupt, match="a: the file is missing or cut off"):
        file.load([(90, 20)])
