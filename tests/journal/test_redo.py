from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from weirpool import JournalError
from weirpool.journal.layout import UNSYNCED
from weirpool.journal.records import Record
from weirpool.journal.redo import SYNCED_PER_WRITE, Redo
from weirpool.journal.replay import FILES, REDO, Reliance

UUID = "01234567-89ab-cdef-0123-456789abcdef"


@dataclass(eq=False)
class Log:
    """A log that notes what is asked of it."""

    said: list[str]
    name: str = "log"
    broken: bool = False
    relies: list[int] = field(default_factory=list)

    def rely_on(self, reliance: Reliance) -> None:
        self.relies.append(reliance.number)

    def sync(self) -> None:
        if self.broken:
            raise JournalError("the disk failed")
        self.said.append(f"sync {self.name}")

    def settle(self) -> None:
        self.sync()
        self.said.append(f"settle {self.name}")


@dataclass
class Append:
    log: Log
    record: Record


def batch(log: Log, size: int = 100) -> Append:
    return Append(log, Record(UUID, 0, 0, [bytes(size)]))


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def redo(tmp_path: Path) -> Iterator[Redo]:
    redo = Redo(tmp_path, 1_100)
    yield redo
    redo.close()


def folders(tmp_path: Path) -> list[Path]:
    return list((tmp_path / REDO).iterdir())


def test_nothing_is_made_before_it_is_needed(redo: Redo, tmp_path: Path) -> None:
    redo.close()
    assert list(tmp_path.iterdir()) == []


def test_one_sync_for_all(redo: Redo, tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    logs = [Log(said, name) for name in "abc"]
    fdatasync, synced = os.fdatasync, []
    monkeypatch.setattr(os, "fdatasync", lambda fd: (synced.append(fd), fdatasync(fd)))
    redo.write([batch(log) for log in logs])
    redo.write([batch(log) for log in logs])
    assert len(synced) == 2
    assert [log.relies for log in logs] == [[0, 1]] * 3
    assert said == []
    (folder,) = folders(tmp_path)
    assert (folder / FILES[0]).stat().st_size == 2 * (32 + 3 * 160)
    redo.close()
    assert said == [text for name in "abc" for text in (f"sync {name}", f"settle {name}")]
    assert folders(tmp_path) == []


def test_a_file_is_used_again_after_its_segments_are_synced(redo: Redo, tmp_path: Path, said: list[str]) -> None:
    one, two = Log(said, "one"), Log(said, "two")
    redo.write([batch(one, 900)])
    redo.write([batch(two, 900)])
    # Some are synced in advance.
    assert said == ["sync one"]
    (folder,) = folders(tmp_path)
    before = [(folder / name).read_bytes() for name in FILES]
    redo.write([batch(two, 200)])
    assert said == ["sync one", "sync two"]
    assert (folder / FILES[1]).read_bytes() == before[1]
    assert (folder / FILES[0]).read_bytes() != before[0]
    assert (folder / FILES[0]).stat().st_size == len(before[0])


def test_every_log_of_a_file_is_synced_before_it_is_used_again(
    redo: Redo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # More logs than the writes since then have synced in advance: their rows would be in no file after a power cut.
    synced, pwrite = [], os.pwrite
    logs = [Log(synced, str(number)) for number in range(2 * SYNCED_PER_WRITE + 1)]
    redo.write([batch(log) for log in logs])
    others = {}

    def written(fd: int, data: bytes, offset: int) -> int:
        if offset == 0:
            others[fd] = list(synced)
        return pwrite(fd, data, offset)

    monkeypatch.setattr(os, "pwrite", written)
    late = Log([], "late")
    redo.write([batch(late, 900)])
    redo.write([batch(late, 900)])
    assert len(others) == 2
    assert set(list(others.values())[1]) == {f"sync {log.name}" for log in logs}


@pytest.mark.parametrize("call", ["pwrite", "fdatasync"])
def test_files_that_failed_are_not_used_again(
    redo: Redo, tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    log = Log(said)
    redo.write([batch(log)])
    (before,) = folders(tmp_path)

    def fails(*arguments: object) -> int:
        raise OSError(errno.EIO, "test")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fails)
        with pytest.raises(JournalError):
            redo.write([batch(log)])
    assert said == ["sync log", "settle log"]
    redo.write([batch(log)])
    (after,) = folders(tmp_path)
    assert after != before


def test_files_stay_while_a_log_needs_them(redo: Redo, tmp_path: Path, said: list[str]) -> None:
    broken, sound = Log(said, "broken"), Log(said, "sound")
    redo.write([batch(broken, 900), batch(sound)])
    (before,) = folders(tmp_path)
    broken.broken = True
    (tmp_path / "source=broken").mkdir()
    (tmp_path / "source=broken" / UNSYNCED).write_bytes(Reliance(before.name, 0).encode())
    # The batch is durable; but the files of the one before cannot be used again.
    redo.write([batch(sound, 900)])
    assert said == ["sync sound", "settle sound"]
    assert before.exists()
    redo.write([batch(sound)])
    assert len(folders(tmp_path)) == 2
    redo.close()
    assert folders(tmp_path) == [before]
