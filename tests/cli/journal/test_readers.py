from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Weirpool, assert_one_line
from tests.cli.journal.logs import fill
from weirpool.journal import Journal
from weirpool.journal.layout import COMMITTED, log_folder
from weirpool.journal.retention import commit


@pytest.fixture
def read_journal(tmp_path: Path) -> Path:
    """Return a journal with the logs a and b, which `spark` reads, and c, which has no reader."""
    for source in "abc":
        fill(tmp_path, source, 2_000)
    for cursor, position in (("spark@0", 1_500), ("spark@1", 1_200), ("report", 3)):
        commit(log_folder(tmp_path, "a"), cursor, position)
    commit(log_folder(tmp_path, "b"), "spark", 7)
    return tmp_path


def test_forget_removes_a_reader_from_every_log(weirpool: Weirpool, read_journal: Path) -> None:
    result = weirpool("journal", "forget", str(read_journal), "spark")
    assert result.code == 0
    first, second = result.out.decode().splitlines()
    kept = Journal(read_journal).reader("a").bytes_between(1_200, 2_000)
    assert first == (
        "a: removed reader spark, which had committed position 1,200; "
        f"800 rows after it ({kept:,} bytes) were kept for it"
    )
    assert second.startswith("b: removed reader spark, which had committed position 7; 1,993 rows after it (")
    journal = Journal(read_journal)
    assert [journal.readers(source) for source in "abc"] == [["report"], [], []]


def test_forget_removes_a_reader_from_one_log(weirpool: Weirpool, read_journal: Path) -> None:
    result = weirpool("journal", "forget", str(read_journal), "spark", "--source", "a", "--json")
    (found,) = result.objects
    kept = Journal(read_journal).reader("a").bytes_between(1_200, 2_000)
    assert found == {
        "source": "a", "reader": "spark", "position": 1_200, "cursors": ["spark@0", "spark@1"],
        "rows": 800, "bytes": kept, "dry_run": False,
    }  # fmt: skip
    journal = Journal(read_journal)
    assert [journal.readers(source) for source in "abc"] == [["report"], ["spark"], []]


def test_forget_lists_readers_when_the_name_is_unknown(weirpool: Weirpool, read_journal: Path) -> None:
    result = weirpool("journal", "forget", str(read_journal), "nobody")
    assert result.code == 2
    assert "has no reader 'nobody'; its readers are a: report, spark; b: spark; c: none" in result.err
    assert_one_line(result)
    result = weirpool("journal", "forget", str(read_journal), "report", "--source", "b")
    assert result.code == 2
    assert "its readers are b: spark" in result.err
    assert Journal(read_journal).readers("a") == ["report", "spark"]


def test_forget_removes_a_reader_with_a_damaged_position(weirpool: Weirpool, read_journal: Path) -> None:
    (log_folder(read_journal, "b") / COMMITTED / "spark").write_bytes(b"junk")
    result = weirpool("journal", "forget", str(read_journal), "spark", "--source", "b")
    assert result.out == b"b: removed reader spark, whose position was damaged\n"
    assert Journal(read_journal).readers("b") == []


def test_lag_shows_how_far_readers_are_behind(weirpool: Weirpool, read_journal: Path) -> None:
    result = weirpool("journal", "lag", str(read_journal))
    assert result.code == 0
    first, second, third, fourth = result.out.decode().splitlines()
    assert first.startswith("a: report is at 3, 1,997 rows behind (")
    assert second.startswith("a: spark is at 1,200, 800 rows behind (")
    assert second.endswith(" s old")
    assert third.startswith("b: spark is at 7, ")
    assert fourth == "c: no readers"
    for verb in ("lag", "readers"):
        *_, last = weirpool("journal", verb, str(read_journal), "--json").objects
        assert last == {"source": "c", "reader": None}
    (found,) = weirpool("journal", "lag", str(read_journal), "--source", "b", "--json").objects
    assert (found["source"], found["reader"], found["position"], found["rows"]) == ("b", "spark", 7, 1_993)
    assert 0 < found["seconds"] < 3_600


@pytest.mark.parametrize("verb", ["lag", "readers"])
def test_lists_continue_after_a_log_that_fails(weirpool: Weirpool, read_journal: Path, verb: str) -> None:
    (log_folder(read_journal, "a") / COMMITTED / "spark@0").write_bytes(b"junk")
    result = weirpool("journal", verb, str(read_journal))
    assert result.code == 1
    first, last = result.out.decode().splitlines()
    assert first.startswith("b: spark ")
    assert last == "c: no readers"
    assert "is not a reader's cursor" in result.err


@pytest.mark.parametrize("verb", ["lag", "readers"])
def test_names_that_control_a_terminal_are_escaped(weirpool: Weirpool, read_journal: Path, verb: str) -> None:
    folder = log_folder(read_journal, "b") / COMMITTED
    (folder / "evil\x1b[2J").write_bytes((folder / "spark").read_bytes())
    first, _ = weirpool("journal", verb, str(read_journal), "--source", "b").lines
    assert first.startswith(b"b: evil\\x1b[2J ")


def test_readers_lists_owners(weirpool: Weirpool, read_journal: Path) -> None:
    commit(log_folder(read_journal, "c"), "table", 5, query="abc1")
    first, *_, last = weirpool("journal", "readers", str(read_journal)).out.decode().splitlines()
    assert first.startswith("a: report at 3, no query, committed 2")
    assert last.startswith("c: table at 5, query abc1, committed 2")
    (found,) = weirpool("journal", "readers", str(read_journal), "--source", "c", "--json").objects
    assert (found["reader"], found["query"], found["position"]) == ("table", "abc1", 5)


def test_seek_moves_a_reader_both_ways(weirpool: Weirpool, read_journal: Path) -> None:
    seek = ("journal", "seek", str(read_journal), "report", "--source", "a", "--to")
    assert weirpool(*seek, "latest").out == b"a: reader report is at 2,000; it was at 3\n"
    moved = {"source": "a", "reader": "report", "position": 0, "before": 2_000, "dry_run": False}
    assert weirpool(*seek, "earliest", "--json").objects == [moved]
    new = weirpool("journal", "seek", str(read_journal), "export", "--source", "a", "--to", "5").out
    assert new == b"a: reader export is at 5; it is new\n"
    assert Journal(read_journal).lags("a")[1].rows == 2_000


@pytest.mark.parametrize("place", ["2001", "1000000", str(2**62), str(2**63)])
def test_seek_stops_at_the_end_and_says_so(weirpool: Weirpool, read_journal: Path, place: str) -> None:
    result = weirpool("journal", "seek", str(read_journal), "report", "--source", "a", "--to", place, "--json")
    assert result.code == 0
    assert [(each["source"], each["position"]) for each in result.objects] == [("a", 2_000)]
    assert f"a: the log ends at 2,000, before {int(place):,}: its end is used" in result.err
    Journal(read_journal).writer("a").close()


def test_a_reader_beyond_the_end_is_shown_and_can_be_set_back(weirpool: Weirpool, read_journal: Path) -> None:
    path = log_folder(read_journal, "b") / COMMITTED / "spark"
    cursor = json.loads(path.read_bytes())
    # Nobody has compared it with the end of the log.
    path.write_text(json.dumps({"position": 10**6, "query": None, "log": cursor["log"]}))
    folder = str(read_journal)
    assert weirpool("journal", "lag", folder, "--source", "b").out == (
        b"b: spark is at 1,000,000, beyond the end of the log, 2,000\n"
    )
    assert weirpool("journal", "verify", folder, "--source", "b").code == 1
    assert (
        "set the reader spark back from position 1000000 to 2000" in weirpool("journal", "repair", folder).out.decode()
    )
    assert weirpool("journal", "seek", folder, "spark", "--to", "latest", "--source", "b").code == 0
    assert weirpool("journal", "verify", folder, "--source", "b").code == 0


def test_seek_leaves_the_readers_of_queries_alone(weirpool: Weirpool, read_journal: Path) -> None:
    commit(log_folder(read_journal, "c"), "table", 5, query="abc1")
    result = weirpool("journal", "seek", str(read_journal), "table", "--to", "latest", "--source", "c")
    assert result.code == 2
    assert "belongs to Spark query abc1" in result.err
    assert_one_line(result)
    assert Journal(read_journal).lags("c")[0].position == 5
