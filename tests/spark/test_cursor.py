from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.serving.served import serving
from weirpool import (
    DiskFull,
    JournalCorrupt,
    JournalError,
    JournalLocked,
    JournalMismatch,
    JournalUnavailable,
    LocalError,
    WeirpoolError,
)
from weirpool.journal.layout import log_folder
from weirpool.journal.retention import commits, cursors, forget
from weirpool.serving.links import close_links
from weirpool.serving.service import Action
from weirpool.spark import cursor as cursors_module
from weirpool.spark.cursor import Cursor

from .journals import fill, segments


def cursor(journal: Path, reader: str = "spark") -> Cursor:
    return Cursor(str(journal), reader, retain_bytes=0)


def start(one: Cursor, query: str, **positions: int) -> None:
    """Plan the first batch of a query: first its end, and then, when Spark keeps its id, its partitions."""
    one.claim(query, positions, first=True, settled=False)
    one.claim(query, positions, first=True, settled=True)


@contextmanager
def claiming(journal: Path, *, settled: bool) -> Iterator[subprocess.Popen[bytes]]:
    """Have a process of another driver read the journal as "spark", from the checkpoint of query q1."""
    code = (
        "import sys; from weirpool.spark.cursor import Cursor; cursor = Cursor(sys.argv[1], 'spark', 0); "
        f"cursor.claim('q1', {{'a': 0}}, first=True, settled={settled}); print('claimed', flush=True); "
        "line = sys.stdin.readline(); "
        "cursor.claim('q1', {'a': 0}, first=True, settled=True); print('settled', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(journal)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"claimed\n"
        try:
            yield process
        finally:
            process.kill()


def go_on(one: Cursor, query: str, **positions: int) -> None:
    """Plan a later batch."""
    one.claim(query, positions, first=False, settled=True)


def test_what_is_committed_goes(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10, 20, 30, segment_bytes=1)
    mine = cursor(tmp_path)
    start(mine, "q1", a=0)
    mine.commit({"a": 25})
    assert len(segments(tmp_path, "a")) == 1
    assert commits(log_folder(tmp_path, "a")) == {"spark": 25}


def test_a_log_that_cannot_be_told_hurts_only_itself(tmp_path: Path) -> None:
    for source in "abc":
        fill(tmp_path, source, 10, 20, segment_bytes=1)
    mine = cursor(tmp_path)
    start(mine, "q1", a=0, b=0, c=0)
    log_folder(tmp_path, "a").rename(tmp_path / "away")
    (log_folder(tmp_path, "b") / "_committed" / "other").write_bytes(b"junk")
    with pytest.raises(JournalError, match=r"no log here.* \(and 1 more\)"):
        mine.commit({"a": 20, "b": 20, "c": 20})
    assert commits(log_folder(tmp_path, "c")) == {"spark": 20}
    assert len(segments(tmp_path, "b")) == 2
    (tmp_path / "away").rename(log_folder(tmp_path, "a"))
    forget(log_folder(tmp_path, "b"), "other")
    mine.commit({"a": 20, "b": 20, "c": 20})
    assert [commits(log_folder(tmp_path, source)) for source in "ab"] == [{"spark": 20}] * 2


def test_what_another_reader_needs_stays(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10, 20, 30, segment_bytes=1)
    slow, fast = cursor(tmp_path, "slow"), cursor(tmp_path, "fast")
    start(slow, "q1", a=0)
    start(fast, "q2", a=0)
    fast.commit({"a": 30})
    assert len(segments(tmp_path, "a")) == 3
    slow.commit({"a": 20})
    assert len(segments(tmp_path, "a")) == 1


def test_committing_less_changes_nothing(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10)
    mine = cursor(tmp_path)
    start(mine, "q1", a=5)
    mine.commit({"a": 3})
    assert commits(log_folder(tmp_path, "a")) == {"spark": 5}


@pytest.mark.parametrize("stopped", [True, False])
def test_a_name_in_use_is_refused_to_a_second_query(tmp_path: Path, stopped: bool) -> None:
    # THREATS 99: also when the first one is stopped.
    fill(tmp_path, "a", 10, 20, 30, segment_bytes=1)
    first, second = cursor(tmp_path), cursor(tmp_path)
    start(first, "q1", a=5)
    if stopped:
        first.release()
    for settled in (False, True):
        with pytest.raises(
            JournalMismatch, match=r"'spark' belongs to another query \(q1\).* `weirpool journal forget`"
        ):
            second.claim("q2", {"a": 30}, first=not settled, settled=settled)
    second.commit({"a": 30})
    assert len(segments(tmp_path, "a")) == 3
    assert cursors(log_folder(tmp_path, "a"))["spark"].position == 5
    forget(log_folder(tmp_path, "a"), "spark")
    start(second, "q2", a=30)
    assert second.claimed


def test_a_query_that_is_started_again_has_its_name(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10)
    first = cursor(tmp_path)
    start(first, "q1", a=0)
    first.release()
    go_on(cursor(tmp_path), "q1", a=5)
    assert commits(log_folder(tmp_path, "a")) == {"spark": 5}


def test_a_query_without_a_first_batch_owns_nothing(tmp_path: Path) -> None:
    # It dies before Spark has its id: with a new one it must have the name again.
    fill(tmp_path, "a", 10)
    first = cursor(tmp_path)
    first.claim("q1", {"a": 3}, first=True, settled=False)
    assert cursors(log_folder(tmp_path, "a"))["spark"].query is None
    first.commit({"a": 10})
    assert commits(log_folder(tmp_path, "a")) == {"spark": 3}
    first.release()
    start(cursor(tmp_path), "q2", a=4)
    assert commits(log_folder(tmp_path, "a")) == {"spark": 4}


@pytest.mark.parametrize("died", ["before", "between", "after"])
def test_two_sources_of_a_query_share_its_name(tmp_path: Path, died: str) -> None:
    # A self-join. The driver dies before, between, or after its sources learn that Spark keeps their ids.
    fill(tmp_path, "a", *range(10, 61, 10), segment_bytes=1)
    left, right = cursor(tmp_path), cursor(tmp_path)
    for one, query in ((left, "q1"), (right, "q2")):
        one.claim(query, {"a": 0}, first=True, settled=False)
    if died != "before":
        left.claim("q1", {"a": 0}, first=True, settled=True)
    if died == "after":
        right.claim("q2", {"a": 0}, first=True, settled=True)
    left.release()
    right.release()
    left, right = cursor(tmp_path), cursor(tmp_path)
    for one, query in ((left, "q1"), (right, "q2")):
        one.claim(query, {"a": 0}, first=True, settled=True)
    left.commit({"a": 40})
    assert len(segments(tmp_path, "a")) == 6
    right.commit({"a": 20})
    assert segments(tmp_path, "a")[0].name == f"{20:020}.arrows"
    with pytest.raises(JournalMismatch):
        cursor(tmp_path).claim("q3", {"a": 0}, first=True, settled=False)
    left.release()
    right.release()
    for query, position in (("q2", 20), ("q1", 40)):
        one = cursor(tmp_path)
        go_on(one, query, a=position)
        one.commit({"a": 60})
    assert len(segments(tmp_path, "a")) == 1
    assert commits(log_folder(tmp_path, "a")) == {"spark": 60}


def test_what_a_dead_source_has_left_holds_nothing_up(tmp_path: Path) -> None:
    # It had no first batch, and was alive still when its successor had one.
    fill(tmp_path, "a", 10, 20, 30, segment_bytes=1)
    zombie, successor = cursor(tmp_path), cursor(tmp_path)
    zombie.claim("q1", {"a": 0}, first=True, settled=False)
    start(successor, "q2", a=0)
    successor.commit({"a": 10})
    assert commits(log_folder(tmp_path, "a")) == {"spark": 0}
    zombie.release()
    successor.commit({"a": 20})
    successor.commit({"a": 30})
    assert commits(log_folder(tmp_path, "a")) == {"spark": 30}
    assert len(segments(tmp_path, "a")) == 1


def test_sources_that_come_later_are_claimed_too(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10)
    mine = cursor(tmp_path)
    start(mine, "q1", a=0)
    fill(tmp_path, "b", 10, 20, segment_bytes=1)
    go_on(mine, "q1", a=5, b=0)
    assert commits(log_folder(tmp_path, "b")) == {"spark": 0}
    mine.commit({"b": 20})
    assert len(segments(tmp_path, "b")) == 1


def test_one_process_at_a_time_reads_for_a_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # THREATS 80
    monkeypatch.setattr(cursors_module, "PATIENCE", 0.0)
    monkeypatch.setattr(cursors_module, "RETRY", 0.001)
    fill(tmp_path, "a", 10)
    first, second = cursor(tmp_path), cursor(tmp_path)
    start(first, "q1", a=5)
    with pytest.raises(JournalLocked, match=f"process {os.getpid()} on .* reads it as 'spark'.* checkpoint"):
        go_on(second, "q1", a=0)
    assert not second.claimed
    assert commits(log_folder(tmp_path, "a")) == {"spark": 5}
    first.release()
    go_on(second, "q1", a=0)
    assert second.claimed


def test_a_name_is_waited_for_while_the_process_before_it_ends(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10)
    with claiming(tmp_path, settled=True) as zombie:
        killer = threading.Timer(0.05, zombie.kill)
        killer.start()
        successor = cursor(tmp_path)
        go_on(successor, "q1", a=3)
        killer.join()
    assert successor.claimed
    assert commits(log_folder(tmp_path, "a")) == {"spark": 3}


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="nobody tells whose process a driver's is")
def test_a_name_taken_at_the_same_moment_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # THREATS 99: neither query has a first batch, and they are those of two drivers, so this is no self-join.
    monkeypatch.setattr(cursors_module, "PATIENCE", 0.0)
    fill(tmp_path, "a", 10)
    second = cursor(tmp_path)
    with claiming(tmp_path, settled=False) as first:
        with pytest.raises(JournalLocked, match=r"process \d+ .* 'spark' .* give this query a reader name of its own"):
            second.claim("q2", {"a": 0}, first=True, settled=False)
        assert list(cursors(log_folder(tmp_path, "a"))) == ["spark"]
        first.kill()
        first.wait()
        # Its former life, say: then the name is free.
        start(second, "q2", a=0)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="nobody tells whose process a driver's is")
def test_the_first_of_two_drivers_keeps_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # THREATS 99: it settles while the other one waits.
    fill(tmp_path, "a", 10)
    second = cursor(tmp_path)
    with claiming(tmp_path, settled=False) as first:
        assert first.stdin is not None

        def settle(seconds: float) -> None:
            assert first.stdin is not None and first.stdout is not None
            first.stdin.write(b"go on\n")
            first.stdin.flush()
            assert first.stdout.readline() == b"settled\n"

        monkeypatch.setattr(cursors_module.time, "sleep", settle)
        with pytest.raises(JournalMismatch, match="belongs to another query"):
            second.claim("q2", {"a": 0}, first=True, settled=False)
        assert not second.claimed


def test_a_checkpoint_in_use_under_another_name_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # THREATS 99
    monkeypatch.setattr(cursors_module, "PATIENCE", 0.0)
    fill(tmp_path, "a", 10)
    with claiming(tmp_path, settled=True) as first:
        with pytest.raises(JournalLocked, match=r"process \d+ .* as 'spark' from the same checkpoint"):
            go_on(cursor(tmp_path, "renamed"), "q1", a=5)
        assert list(cursors(log_folder(tmp_path, "a"))) == ["spark"]
        # Its former life may take a moment to end.
        monkeypatch.setattr(cursors_module, "PATIENCE", 10.0)
        monkeypatch.setattr(cursors_module.time, "sleep", lambda _: (first.kill(), first.wait()))
        renamed = cursor(tmp_path, "renamed")
        go_on(renamed, "q1", a=5)
    go_on(renamed, "q1", a=5)
    assert caplog.text.count("had the reader name 'spark' before, which still holds back rows; drop that name") == 1
    assert commits(log_folder(tmp_path, "a")) == {"renamed": 5, "spark": 0}


def test_a_query_that_was_taken_back_keeps_what_it_has_still_to_read(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10, 20, 30, segment_bytes=1)
    first = Cursor(str(tmp_path), "spark", retain_bytes=1 << 20)
    start(first, "q1", a=0)
    first.commit({"a": 30})
    first.release()
    again = cursor(tmp_path)
    go_on(again, "q1", a=0)
    again.commit({"a": 10})
    assert len(segments(tmp_path, "a")) == 2


def test_a_journal_without_sources_is_claimed_later(tmp_path: Path) -> None:
    mine = cursor(tmp_path / "later")
    start(mine, "q1")
    assert not mine.claimed and not (tmp_path / "later").exists()
    fill(tmp_path / "later", "a", 5)
    start(mine, "q1", a=0)
    assert mine.claimed


def test_the_cursor_of_another_log_is_refused(tmp_path: Path) -> None:
    # THREATS 99: the log was created again, and its cursors were kept.
    fill(tmp_path, "a", 5)
    first = cursor(tmp_path)
    start(first, "q1", a=0)
    first.release()
    kept = (log_folder(tmp_path, "a") / "_committed").rename(tmp_path / "kept")
    shutil.rmtree(log_folder(tmp_path, "a"))
    fill(tmp_path, "a", 9)
    kept.rename(log_folder(tmp_path, "a") / "_committed")
    with pytest.raises(JournalMismatch, match="has committed rows of log"):
        go_on(cursor(tmp_path), "q1", a=0)


def test_a_damaged_cursor_is_named(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    first = cursor(tmp_path)
    start(first, "q1", a=0)
    first.release()
    (log_folder(tmp_path, "a") / "_committed" / "spark").write_bytes(b"junk")
    with pytest.raises(JournalCorrupt, match="_committed/spark"):
        go_on(cursor(tmp_path), "q1", a=0)


def test_a_journal_that_cannot_be_written_to_is_explained(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    (tmp_path / "_readers").write_text("in the way")
    with pytest.raises(LocalError, match="omit the option reader"):
        start(cursor(tmp_path), "q1", a=0)


def failing(number: int) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize(
    ("number", "error"),
    [
        (errno.EROFS, LocalError),
        (errno.EACCES, LocalError),
        (errno.EIO, JournalError),
        (errno.ESTALE, JournalError),
        (errno.ENOSPC, DiskFull),
        (errno.EMFILE, JournalUnavailable),
    ],
    ids=errno.errorcode.get,
)
@pytest.mark.parametrize("call", ["weirpool.journal.lock.open_private", "weirpool.journal.coordinator.make_folder"])
def test_only_a_refusal_ends_a_query_that_claims_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int, error: type[WeirpoolError]
) -> None:
    fill(tmp_path, "a", 5)
    mine = cursor(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(call, failing(number))
        with pytest.raises(WeirpoolError) as caught:
            start(mine, "q1", a=0)
    assert type(caught.value) is error
    assert ("omit the option reader" in str(caught.value)) == (error is LocalError)
    start(mine, "q1", a=0)
    assert mine.claimed


def test_a_collector_that_does_not_allow_it_is_a_refusal(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    with serving(tmp_path, authorize=lambda connection, action: action is Action.READ) as served:
        with pytest.raises(LocalError, match=r"commit is not allowed to this client.*omit the option reader"):
            start(Cursor(served.url, "spark", retain_bytes=0), "q1", a=0)
        close_links()


def test_a_name_that_a_lost_connection_of_this_process_holds_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cursors_module, "PATIENCE", 0.05)
    fill(tmp_path, "a", 5)
    with serving(tmp_path) as served:
        mine = Cursor(served.url, "spark", retain_bytes=0)
        start(mine, "q1", a=0)
        # The collector has not noticed yet that this one is gone.
        for one, claim in ((mine, go_on), (Cursor(served.url, "spark", retain_bytes=0), start)):
            again = Cursor(served.url, "spark", retain_bytes=0)
            with pytest.raises(JournalError, match="still holds 'spark' for a broken connection") as caught:
                claim(again, "q1", a=0)
            assert type(caught.value) is JournalError
            if one is mine:
                forget(log_folder(tmp_path, "a"), "spark")
        mine.release()
        close_links()


def test_a_disk_that_fails_later_is_an_error_that_passes(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    mine = cursor(tmp_path)
    start(mine, "q1", a=0)
    committed = log_folder(tmp_path, "a") / "_committed"
    shutil.rmtree(committed)
    committed.write_text("in the way")
    with pytest.raises(JournalError):
        mine.commit({"a": 5})
    committed.unlink()
    mine.commit({"a": 5})
    assert commits(log_folder(tmp_path, "a")) == {"spark": 5}
