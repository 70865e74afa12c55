from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.receiving.micro_batches import rows
from weirpool.errors import ApplicationError, JournalError, Rejected
from weirpool.receiving import stages as module
from weirpool.receiving.messages import Stage
from weirpool.receiving.stages import StageFolder, StageWriter


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def stage(folder: StageFolder, query: str = "q", batch: int = 0, data: bytes = b"abc", client: str = "c") -> Stage:
    writer = folder.begin(query, batch, client)
    writer.append(rows([data, data]))
    return writer.finish()


def data_of(folder: StageFolder, staged: Stage, query: str = "q", batch: int = 0) -> list[bytes]:
    folder.check(query, batch, staged)
    return [value for items in folder.batches(staged) for value in items["data"].to_pylist()]


def files(path: Path) -> list[str]:
    return [each.suffix for each in (path / "_stages").iterdir()]


def test_stage_is_found_by_a_later_process(tmp_path: Path) -> None:
    staged = stage(StageFolder(tmp_path))
    unfinished = StageFolder(tmp_path).begin("q", 0, "c")
    unfinished.append(rows([b"lost"]))
    assert sorted(files(tmp_path)) == [".part", ".stage"]
    later = StageFolder(tmp_path)
    assert files(tmp_path) == [".stage"]
    assert data_of(later, staged) == [b"abc", b"abc"]
    assert later.used_bytes > 0


def test_discarded_stage_leaves_nothing(tmp_path: Path) -> None:
    folder = StageFolder(tmp_path)
    writer = folder.begin("q", 0, "c")
    writer.append(rows([b"x"]))
    writer.discard()
    assert (files(tmp_path), folder.used_bytes) == ([], 0)


def test_damaged_stage_is_not_committed(tmp_path: Path) -> None:
    folder = StageFolder(tmp_path)
    staged = stage(folder)
    (path,) = (tmp_path / "_stages").iterdir()
    content = path.read_bytes()
    path.write_bytes(content.replace(b"abcabc", b"abcabd"))
    with pytest.raises(ApplicationError, match="does not have the 2 rows"):
        data_of(folder, staged)
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ApplicationError, match="run the micro-batch again"):
        data_of(folder, staged)


def test_stages_are_bounded_for_a_query_and_for_all(tmp_path: Path) -> None:
    folder = StageFolder(tmp_path, limit=10_000)
    stage(folder, "p", data=bytes(2_000), client="one")
    with pytest.raises(Rejected, match=r"bytes of query 'p' and .* the limit is 10000"):
        stage(folder, "p", data=bytes(1_000), client="two")
    stage(folder, "q", data=bytes(2_000), client="two")
    with pytest.raises(Rejected, match="of all queries"):
        stage(folder, "r", data=bytes(1_000), client="three")


def test_bytes_of_one_client_are_bounded_whatever_its_queries(tmp_path: Path) -> None:
    # THREATS 111
    folder = StageFolder(tmp_path, limit=10_000)
    with pytest.raises(Rejected, match="no more for a client than it leaves to others"):
        for number in range(10):
            stage(folder, f"q{number}", data=bytes(200), client="greedy")
    assert 3_000 < folder.used_bytes <= 5_000
    assert data_of(folder, stage(folder, "q", data=bytes(1_000), client="honest"))
    # Those of an earlier process count for nobody, but for all.
    later = StageFolder(tmp_path, limit=10_000)
    assert later.used_bytes > 5_000
    with pytest.raises(Rejected):
        stage(later, "r", data=bytes(1_500), client="greedy")
    stage(later, "r", data=bytes(200), client="honest")


def test_a_stage_has_a_descriptor_only_while_it_is_written(tmp_path: Path) -> None:
    # THREATS 111
    folder = StageFolder(tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    writers = [folder.begin("q", 0, "c") for _ in range(100)]
    for writer in writers:
        writer.append(rows([b"x"]))
    assert len(os.listdir("/proc/self/fd")) == before
    writers[0].append(rows([b"y"]))
    assert data_of(folder, writers[0].finish()) == [b"x", b"y"]
    for writer in writers:
        writer.discard()
    assert files(tmp_path) == [".stage"]


def test_old_stages_expire_unless_they_are_being_written(tmp_path: Path) -> None:
    clock = Clock()
    folder = StageFolder(tmp_path, seconds=60, clock=clock)
    old = stage(folder)
    writer: StageWriter = folder.begin("q", 0, "c")
    clock.now += 61
    new = stage(folder)
    folder.expire()
    with pytest.raises(ApplicationError, match="gone"):
        data_of(folder, old)
    assert data_of(folder, new) == [b"abc", b"abc"]
    writer.append(rows([b"x"]))
    assert data_of(folder, writer.finish()) == [b"x"]


@pytest.mark.parametrize("ahead", [-10 * 365 * 86_400, -3_600, 3_600, 10 * 365 * 86_400])
def test_no_clock_of_a_disk_makes_a_stage_older(tmp_path: Path, ahead: int) -> None:
    clock = Clock()
    left = stage(StageFolder(tmp_path, seconds=60, clock=clock))
    file = next((tmp_path / "_stages").iterdir())
    there = file.stat().st_mtime + ahead
    os.utime(file, (there, there))
    folder = StageFolder(tmp_path, seconds=60, clock=clock)
    staged = stage(folder)
    clock.now += 59
    folder.expire()
    assert data_of(folder, staged) == data_of(folder, left) == [b"abc", b"abc"]
    folder.release([staged, left])
    clock.now += 2
    folder.expire()
    assert files(tmp_path) == []


def test_the_clock_of_stages_does_not_jump() -> None:
    assert StageFolder.__init__.__kwdefaults__["clock"] is time.monotonic


def test_commit_drops_what_nobody_has_named(tmp_path: Path) -> None:
    folder = StageFolder(tmp_path)
    stage(folder, "q", 0), stage(folder, "q", 1)
    later, other = stage(folder, "q", 2), stage(folder, "p", 0)
    folder.drop_until("q", 1)
    assert len(files(tmp_path)) == 2
    assert data_of(folder, later, "q", 2) == data_of(folder, other, "p") == [b"abc", b"abc"]


def test_stages_of_a_commit_that_has_begun_stay_until_it_has_ended(tmp_path: Path) -> None:
    clock = Clock()
    folder = StageFolder(tmp_path, seconds=60, clock=clock)
    staged = stage(folder)
    folder.check("q", 0, staged)
    clock.now += 61
    folder.expire()
    folder.drop([staged.id])
    assert data_of(folder, staged) == [b"abc", b"abc"]
    folder.drop_until("q", 0)
    assert files(tmp_path) == []


def test_stages_belong_to_their_micro_batch(tmp_path: Path) -> None:
    folder = StageFolder(tmp_path)
    staged = stage(folder)
    for query, batch in (("p", 0), ("q", 1)):
        with pytest.raises(ApplicationError, match="gone"):
            folder.check(query, batch, staged)


def test_many_small_batches_are_bounded_by_what_they_take_on_disk(tmp_path: Path) -> None:
    folder = StageFolder(tmp_path, limit=100_000)
    writer = folder.begin("q", 0, "c")
    with pytest.raises(Rejected, match="bytes of query"):
        for _ in range(1_000):
            writer.append(rows([b"x"]))
    assert sum(each.stat().st_size for each in (tmp_path / "_stages").iterdir()) < 50_000
    writer.discard()
    assert folder.used_bytes == 0


def test_number_of_stages_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_STAGES", 8)
    folder = StageFolder(tmp_path)
    writers = [folder.begin("q", 0, f"c{number % 2}") for number in range(4)]
    with pytest.raises(Rejected, match="use fewer partitions"):
        folder.begin("q", 0, "c2")
    # A client has a share, whatever its queries are.
    writers.append(folder.begin("p", 0, "c0"))
    with pytest.raises(Rejected, match="use fewer partitions"):
        folder.begin("p", 0, "c0")
    writers += [folder.begin("p", 0, f"c{number}") for number in range(2, 5)]
    with pytest.raises(Rejected, match="use fewer partitions"):
        folder.begin("r", 0, "c5")
    for writer in writers:
        writer.discard()
    folder.begin("r", 0, "c0").discard()


def test_age_of_a_stage_is_counted_from_its_completion(tmp_path: Path) -> None:
    clock = Clock()
    folder = StageFolder(tmp_path, seconds=60, clock=clock)
    writer = folder.begin("q", 0, "c")
    writer.append(rows([b"x"]))
    clock.now += 61
    staged = writer.finish()
    folder.expire()
    assert data_of(folder, staged) == [b"x"]


def test_what_cannot_be_removed_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = StageFolder(tmp_path)
    names = [stage(folder).id, stage(folder).id]
    real = Path.unlink
    failures = [1]

    def unlink(self: Path, missing_ok: bool = False) -> None:
        if failures:
            failures.pop()
            raise OSError(5, "failed")
        real(self, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink)
    with pytest.raises(JournalError):
        folder.drop(names)
    folder.drop(names)
    assert (files(tmp_path), folder.used_bytes) == ([], 0)
