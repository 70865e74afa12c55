from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from weirpool import DataLost, JournalCorrupt, JournalError, JournalMissing, LocalError
from weirpool.journal import gaps
from weirpool.journal.gaps import Gap
from weirpool.journal.layout import log_folder
from weirpool.journal.reader import JournalReader
from weirpool.journal.retention import trim
from weirpool.journal.writer import JournalWriter
from weirpool.spark import planning
from weirpool.spark.offsets import Offset
from weirpool.spark.planning import Planner
from weirpool.spark.view import JournalView

from .journals import damage, fill, item, items, log_of, options, segments


def planner(journal: Path, **more: str) -> Planner:
    parsed = options(journal, **more)
    view = JournalView(parsed)
    view.refresh()
    return Planner(parsed, view)


def end(journal: Path, position: int, query: str = "q1", begun: int = 0) -> Offset:
    return Offset({"a": begun}, {"a": position}, {"a": log_of(journal, "a")}, query)


def plan(journal: Path, first: int, behind: int, query: str = "q1", **more: str) -> list[tuple[int, int]]:
    parts = planner(journal, **more).plan({"a": (first, behind)}, end(journal, behind, query))
    assert {part.log for part in parts} <= {log_of(journal, "a")}
    return [(part.first, part.end) for part in parts]


def lost(journal: Path) -> list[tuple[object, object]]:
    return [(gap.lost, gap.query) for gap in gaps.load(log_folder(journal, "a"))]


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A journal whose rows 10 to 19 are damaged."""
    fill(tmp_path, "a", 10, 20, 30)
    damage(segments(tmp_path, "a")[0], item(15))
    return tmp_path


def test_by_default_nothing_is_looked_for(damaged: Path) -> None:
    assert plan(damaged, 0, 30) == [(0, 30)]
    assert lost(damaged) == []


def test_what_is_lost_is_recorded_before_anything_is_read(damaged: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert plan(damaged, 3, 28, failOnDataLoss="false", reader="flights") == [(3, 10), (20, 28)]
    (gap,) = gaps.load(log_folder(damaged, "a"))
    assert (gap.position, gap.lost, gap.query) == (20, (10, 20), "q1")
    assert gap.reason.startswith("skipped by query flights (q1): ")
    assert "source 'a': skipped positions 10 to 19: " in caplog.text


def test_rows_that_were_trimmed_are_passed_over(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10, 20, 30, segment_bytes=1)
    trim(log_folder(tmp_path, "a"), 20, reader="other", retain_bytes=0)
    assert plan(tmp_path, 5, 30, failOnDataLoss="false") == [(20, 30)]
    assert lost(tmp_path) == [((5, 20), "q1")]


def test_a_batch_has_the_same_rows_after_a_crash(damaged: Path) -> None:
    # The driver died when it had recorded the loss; somebody has repaired the file since.
    before = plan(damaged, 0, 30, failOnDataLoss="false")
    damage(segments(damaged, "a")[0], b"item 14")
    content = segments(damaged, "a")[0].read_bytes()
    at = bytearray(content)
    for row in (14, 15):
        at[at.index(bytes([item(row)[0] ^ 1]) + item(row)[1:])] ^= 1
    segments(damaged, "a")[0].write_bytes(at)
    assert plan(damaged, 0, 30) == [(0, 30)]
    assert plan(damaged, 0, 30, failOnDataLoss="false") == before == [(0, 10), (20, 30)]
    assert lost(damaged) == [((10, 20), "q1")]


def test_what_another_query_has_passed_over_is_there_for_this_one(damaged: Path) -> None:
    whole = segments(damaged, "a")[0].read_bytes()
    plan(damaged, 0, 30, failOnDataLoss="false")
    sound = bytearray(whole)
    sound[sound.index(bytes([item(15)[0] ^ 1]) + item(15)[1:])] ^= 1
    segments(damaged, "a")[0].write_bytes(sound)
    assert plan(damaged, 0, 30, query="q2", failOnDataLoss="false", failOnGap="true") == [(0, 30)]


def test_what_one_query_passes_over_is_still_an_error_for_others(damaged: Path) -> None:
    plan(damaged, 0, 30, failOnDataLoss="false")
    with pytest.raises(JournalCorrupt, match="positions 10 to 19"):
        list(JournalReader(damaged, "a").read(0, 30))


def test_more_losses_in_the_same_batch_are_recorded_too(damaged: Path) -> None:
    plan(damaged, 0, 30, failOnDataLoss="false")
    damage(segments(damaged, "a")[0], item(25))
    assert plan(damaged, 0, 30, failOnDataLoss="false") == [(0, 10)]
    assert lost(damaged) == [((10, 20), "q1"), ((20, 30), "q1")]


def test_what_cannot_be_recorded_is_not_passed_over(damaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (log_folder(damaged, "a") / "_gaps.lock").mkdir()
    with pytest.raises(JournalError, match="_gaps"):
        plan(damaged, 0, 30, failOnDataLoss="false")
    monkeypatch.setattr(planning, "coordinator_of", lambda _: None)
    with pytest.raises(LocalError, match=r"positions 10 to 19 are lost .* copy the journal to a disk"):
        plan(damaged, 0, 30, failOnDataLoss="false")


def test_a_log_that_goes_while_it_is_looked_through_has_lost_nothing(
    damaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # THREATS 99: the disk was unmounted meanwhile.
    losses = planning.losses

    def unmounted(*args: object) -> object:
        found = losses(*args)  # type: ignore[arg-type]
        log_folder(damaged, "a").rename(damaged / "away")
        return found

    planned = planner(damaged, failOnDataLoss="false")
    batch = end(damaged, 30)
    monkeypatch.setattr(planning, "losses", unmounted)
    with pytest.raises(JournalMissing):
        planned.plan({"a": (0, 30)}, batch)
    assert not (damaged / "away" / "_gaps").exists()


def test_a_copy_that_ends_before_the_batch_has_lost_nothing(tmp_path: Path) -> None:
    # THREATS 99: between two looks, an older copy of the same log has taken its place.
    fill(tmp_path / "journal", "a", 10, segment_bytes=1)
    shutil.copytree(tmp_path / "journal", tmp_path / "copy")
    fill(tmp_path / "journal", "a", 20, segment_bytes=1)
    planned = planner(tmp_path / "journal", failOnDataLoss="false")
    batch = end(tmp_path / "journal", 20)
    shutil.rmtree(tmp_path / "journal")
    (tmp_path / "copy").rename(tmp_path / "journal")
    with pytest.raises(DataLost, match="ends at position 10, before 20; restore"):
        planned.plan({"a": (5, 20)}, batch)
    assert lost(tmp_path / "journal") == []


def test_a_gap_and_a_loss_are_the_same_to_who_wants_none(damaged: Path) -> None:
    with pytest.raises(DataLost, match=r"positions 10 to 19 are lost .*, and failOnGap is true"):
        plan(damaged, 0, 30, failOnDataLoss="false", failOnGap="true")
    assert lost(damaged) == []


def test_a_batch_read_leaves_no_trace(damaged: Path, caplog: pytest.LogCaptureFixture) -> None:
    parts = planner(damaged, failOnDataLoss="false").plan_once({"a": (0, 30)})
    assert [(part.first, part.end) for part in parts] == [(0, 10), (20, 30)]
    assert "source 'a': skipped positions 10 to 19: " in caplog.text
    assert lost(damaged) == []


# Gaps


@pytest.fixture
def gappy(tmp_path: Path) -> Path:
    """A journal with gaps before its first row, before row 5, and behind its last one."""
    with JournalWriter.open(tmp_path, "a", fsync=False) as writer:
        writer.append_gap("never began")
        writer.append(items(0, 5), "flights")
        writer.append_gap("the publisher had forgotten the session")
        writer.append(items(5, 9), "flights")
        writer.append_gap("and again")
    return tmp_path


def test_gaps_are_reported_with_the_rows_behind_them(gappy: Path, caplog: pytest.LogCaptureFixture) -> None:
    plan(gappy, 1, 5)
    assert caplog.text == ""
    plan(gappy, 5, 9)
    assert "source 'a': items were lost before position 5: the publisher had forgotten the session" in caplog.text


def test_many_gaps_are_not_reported_one_by_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with JournalWriter.open(tmp_path, "a", fsync=False) as writer:
        for row in range(30):
            writer.append_gap("it failed")
            writer.append(items(row, row + 1), "flights")
    plan(tmp_path, 0, 30)
    assert len(caplog.messages) == 11
    assert caplog.messages[-1] == "source 'a': 20 more losses; the option rows=gaps lists all of them"


def test_rows_before_a_gap_are_read_and_then_it_ends_the_query(gappy: Path) -> None:
    planned = planner(gappy, failOnGap="true")
    assert planned.before_gaps({"a": (0, 9)}, {"a": 0}) == {"a": (0, 5)}
    assert planned.before_gaps({"a": (2, 4)}, {"a": 0}) == {"a": (2, 4)}
    assert planned.before_gaps({"a": (5, 5)}, {"a": 0}) == {"a": (5, 5)}
    with pytest.raises(DataLost, match=r'before position 5 .*set it to false, or start at startingOffsets {"a": 5}'):
        planned.before_gaps({"a": (5, 9)}, {"a": 0})


def test_a_query_that_begins_behind_a_gap_does_not_read_across_it(gappy: Path) -> None:
    assert planner(gappy, failOnGap="true").before_gaps({"a": (5, 9)}, {"a": 5}) == {"a": (5, 9)}
    begun = end(gappy, 9, begun=5)
    assert planner(gappy, failOnGap="true").plan({"a": (5, 9)}, begun)


def test_a_planned_batch_with_a_gap_ends_the_query(gappy: Path) -> None:
    # It was planned without failOnGap, or the gap was recorded since.
    with pytest.raises(DataLost, match="items were lost before position 5"):
        plan(gappy, 3, 9, failOnGap="true")
    with pytest.raises(DataLost, match="items were lost before position 5"):
        planner(gappy, failOnGap="true").plan_once({"a": (0, 9)})


def test_a_gap_that_another_query_has_made_is_not_this_one_s(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10)
    gaps.add(log_folder(tmp_path, "a"), [Gap(5, datetime(2026, 1, 1, tzinfo=UTC), "q2", lost=(3, 5), query="q2")])
    assert planner(tmp_path, failOnGap="true").before_gaps({"a": (0, 9)}, {"a": 0}) == {"a": (0, 9)}
    assert plan(tmp_path, 0, 9, failOnGap="true") == [(0, 9)]
