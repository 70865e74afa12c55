from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Weirpool, assert_one_line
from tests.cli.journal.logs import fill, spoil
from tests.journal.logs import append
from weirpool.journal import Journal
from weirpool.journal.layout import log_folder
from weirpool.journal.retention import commit
from weirpool.journal.writer import JournalWriter


@pytest.fixture
def segmented(tmp_path: Path) -> Path:
    """A journal with one log of four segments."""
    with JournalWriter.open(tmp_path, "s", segment_bytes=1, fsync=False) as writer:
        append(writer, 3, 2, 4, 1)
    return tmp_path


def test_trim_deletes_whole_segments(weirpool: Weirpool, segmented: Path) -> None:
    trim = ("journal", "trim", str(segmented), "--to")
    (oldest, *rest) = Journal(segmented).deletable("s", 10)
    line = f"s: deleted 3 rows ({oldest.size:,} bytes), positions 0 to 2; the first row is at 3\n"
    assert weirpool(*trim, "4").out == line.encode()
    assert weirpool(*trim, "4").out == b"s: nothing to delete; the first row is at 3\n"
    size = sum(each.size for each in rest)
    deleted = {"source": "s", "position": 10, "first": 9, "rows": 6, "bytes": size, "dry_run": False}
    assert weirpool(*trim, "latest", "--json").objects == [deleted]
    assert Journal(segmented).verify()["s"].sound


def test_trim_leaves_sealed_rows(weirpool: Weirpool, segmented: Path) -> None:
    assert weirpool("journal", "seal", str(segmented), "--force").code == 0
    trim = ("journal", "trim", str(segmented), "--to", "latest")
    assert weirpool(*trim).out == b"s: nothing to delete; the first row is at 0\n"
    assert Journal(segmented).reader("s").first == 0


def test_trim_continues_after_a_log_that_fails(weirpool: Weirpool, tmp_path: Path) -> None:
    spoil(tmp_path)
    fill(tmp_path, "d", 3)
    result = weirpool("journal", "trim", str(tmp_path), "--to", "1")
    assert result.code == 1
    assert "b: " in result.err
    assert result.out.decode().splitlines()[-1] == "d: nothing to delete; the first row is at 0"


def test_trim_waits_for_readers(weirpool: Weirpool, segmented: Path) -> None:
    commit(log_folder(segmented, "s"), "report", 4)
    result = weirpool("journal", "trim", str(segmented), "--to", "9")
    assert result.code == 2
    assert "have not committed the rows below 9: report at 4" in result.err
    assert_one_line(result)
    assert Journal(segmented).reader("s").first == 0
    assert weirpool("journal", "trim", str(segmented), "--to", "9", "--force").out.endswith(
        b"; the first row is at 9\n"
    )


def test_trim_deletes_nothing_if_a_reader_of_any_log_waits(weirpool: Weirpool, tmp_path: Path) -> None:
    for source in "ab":
        for _ in range(3):
            # A writer that is opened anew may start another segment.
            fill(tmp_path, source, 3)
    segments = sorted(tmp_path.rglob("*.arrows"))
    commit(log_folder(tmp_path, "b"), "report", 0)
    result = weirpool("journal", "trim", str(tmp_path), "--to", "latest")
    assert (result.code, result.out) == (2, b"")
    assert "readers of 'b' have not committed the rows below 9: report at 0" in result.err
    assert_one_line(result)
    assert sorted(tmp_path.rglob("*.arrows")) == segments


def test_trim_deletes_nothing_if_a_position_is_damaged(weirpool: Weirpool, segmented: Path) -> None:
    commit(log_folder(segmented, "s"), "report", 4)
    (log_folder(segmented, "s") / "_committed" / "report").write_text("?")
    result = weirpool("journal", "trim", str(segmented), "--to", "9")
    assert (result.code, result.out) == (1, b"")
    assert_one_line(result)
    assert Journal(segmented).reader("s").first == 0


def test_cp_copies_what_is_new(weirpool: Weirpool, tmp_path: Path) -> None:
    fill(tmp_path / "one", "a", 3)
    fill(tmp_path / "one", "b", 3)
    cp = ("journal", "cp", str(tmp_path / "one"), str(tmp_path / "two"))
    first, second = weirpool(*cp).out.decode().splitlines()
    assert first.startswith("a: copied ")
    assert first.endswith("the copy holds 0 to 3")
    assert second.startswith("b: ")
    fill(tmp_path / "one", "a", 3)
    one, two = weirpool(*cp, "--json").objects
    assert (one["end"], two["end"], two["copied"]) == (6, 3, 0)
    result = weirpool("journal", "verify", str(tmp_path / "one"), "--against", str(tmp_path / "two"))
    assert result.code == 0


def test_cp_continues_after_a_log_that_fails(weirpool: Weirpool, tmp_path: Path) -> None:
    spoil(tmp_path / "one")
    result = weirpool("journal", "cp", str(tmp_path / "one"), str(tmp_path / "two"))
    assert result.code == 1
    assert "b: " in result.err
    assert result.out.decode().startswith("a: copied ")


def test_seal_writes_parquet(weirpool: Weirpool, segmented: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    seal = ("journal", "seal", str(segmented), "--store", str(store))
    assert weirpool(*seal).out == b"s: nothing to seal; --force also seals what is small and recent\n"
    nothing = {"source": "s", "first": None, "end": None, "size": 0, "raw_bytes": 0, "dry_run": False}
    assert weirpool(*seal, "--json").objects == [nothing]
    before = sorted(tmp_path.rglob("*"))
    planned = weirpool(*seal, "--force", "--dry-run")
    assert planned.out.startswith(b"s: would seal 0 to 9, ") and planned.out.endswith(b" bytes before compression\n")
    (plan,) = weirpool(*seal, "--force", "--dry-run", "--json").objects
    assert (plan["source"], plan["first"], plan["end"], plan["size"], plan["dry_run"]) == ("s", 0, 9, None, True)
    assert sorted(tmp_path.rglob("*")) == before
    result = weirpool(*seal, "--force")
    assert result.code == 0
    assert result.out.startswith(b"s: sealed 0 to 9, ")
    assert list(store.glob("source=s/*.parquet"))
    assert weirpool("journal", "dump", str(segmented), "--source", "s").lines == [b"%d" % row for row in range(10)]
    assert weirpool(*seal, "--force", "--json").objects == [nothing]
    assert weirpool(*seal, "--force").out == b"s: nothing to seal\n"


def test_seal_tells_what_it_cannot_do(weirpool: Weirpool, segmented: Path, tmp_path: Path) -> None:
    (tmp_path / "store").write_text("not a folder")
    result = weirpool("journal", "seal", str(segmented), "--store", str(tmp_path / "store"), "--force")
    assert result.code == 1
    assert_one_line(result)
