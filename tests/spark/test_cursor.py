from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from penstock import JournalError, JournalLocked, LocalError
from penstock.journal.layout import log_folder
from penstock.journal.retention import commits
from penstock.spark import cursor as cursors
from penstock.spark.cursor import Cursor

from .journals import fill, segments


def cursor(journal: Path, reader: str = "spark") -> Cursor:
    return Cursor(str(journal), reader, retain_bytes=0)


def test_what_is_committed_goes(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10, 20, 30, segment_bytes=1)
    mine = cursor(tmp_path)
    mine.claim({"a": 0})
    mine.commit({"a": 25})
    assert len(segments(tmp_path, "a")) == 1
    assert commits(log_folder(tmp_path, "a")) == {"spark": 25}


def test_what_another_reader_needs_stays(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10, 20, 30, segment_bytes=1)
    slow, fast = cursor(tmp_path, "slow"), cursor(tmp_path, "fast")
    slow.claim({"a": 0})
    fast.claim({"a": 0})
    fast.commit({"a": 30})
    assert len(segments(tmp_path, "a")) == 3
    slow.commit({"a": 20})
    assert len(segments(tmp_path, "a")) == 1


def test_committing_less_changes_nothing(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10)
    mine = cursor(tmp_path)
    mine.claim({"a": 5})
    mine.commit({"a": 3})
    assert commits(log_folder(tmp_path, "a")) == {"spark": 5}


def test_one_process_at_a_time_has_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # THREATS 80
    monkeypatch.setattr(cursors, "PATIENCE", 0.0)
    monkeypatch.setattr(cursors, "RETRY", 0.001)
    fill(tmp_path, "a", 10)
    first, second = cursor(tmp_path), cursor(tmp_path)
    first.claim({"a": 5})
    with pytest.raises(JournalLocked, match=f"process {os.getpid()} on .* reads it as 'spark'; .* option reader"):
        second.claim({"a": 0})
    assert not second.claimed
    assert commits(log_folder(tmp_path, "a")) == {"spark": 5}
    first.release()
    second.claim({"a": 0})
    assert second.claimed


def test_a_name_is_waited_for_while_the_process_before_it_ends(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10)
    code = (
        "import sys; from penstock.spark.cursor import Cursor; cursor = Cursor(sys.argv[1], 'spark', 0); "
        "cursor.claim({'a': 0}); print('claimed', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as zombie:
        assert zombie.stdout is not None and zombie.stdout.readline() == b"claimed\n"
        killer = threading.Timer(0.05, zombie.kill)
        killer.start()
        successor = cursor(tmp_path)
        successor.claim({"a": 3})
        killer.join()
    assert successor.claimed
    assert commits(log_folder(tmp_path, "a")) == {"spark": 3}


def test_a_query_that_begins_anew_keeps_what_it_has_still_to_read(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10, 20, 30, segment_bytes=1)
    first = Cursor(str(tmp_path), "spark", retain_bytes=1 << 20)
    first.claim({"a": 0})
    first.commit({"a": 30})
    first.release()
    again = cursor(tmp_path)
    again.claim({"a": 0})
    again.commit({"a": 10})
    assert len(segments(tmp_path, "a")) == 2


def test_a_journal_that_is_not_there_yet_is_claimed_later(tmp_path: Path) -> None:
    mine = cursor(tmp_path / "later")
    mine.claim({})
    assert not mine.claimed and not (tmp_path / "later").exists()
    fill(tmp_path / "later", "a", 5)
    mine.claim({"a": 0})
    assert mine.claimed


def test_sources_that_are_gone_are_left_alone(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    mine = cursor(tmp_path)
    mine.claim({"a": 0, "gone": 3})
    mine.commit({"a": 5, "gone": 4})
    assert not log_folder(tmp_path, "gone").exists()


def test_a_journal_that_cannot_be_written_to_is_explained(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    (tmp_path / "_readers").write_text("in the way")
    with pytest.raises(LocalError, match="option trim to false"):
        cursor(tmp_path).claim({"a": 0})


def test_a_disk_that_fails_later_is_an_error_that_passes(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    mine = cursor(tmp_path)
    mine.claim({"a": 0})
    committed = log_folder(tmp_path, "a") / "_committed"
    shutil.rmtree(committed)
    committed.write_text("in the way")
    with pytest.raises(JournalError):
        mine.commit({"a": 5})
    committed.unlink()
    mine.commit({"a": 5})
    assert commits(log_folder(tmp_path, "a")) == {"spark": 5}
