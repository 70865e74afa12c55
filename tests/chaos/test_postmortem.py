"""A chaos run that breaks the promise says all that one needs to look for the cause."""

from __future__ import annotations

from pathlib import Path

from chaos.children import End
from chaos.oracle import Verdict
from chaos.postmortem import LINES, postmortem
from chaos.report import Report

FAULTS = [
    {"at": 100.0, "kind": "cut", "target": "a", "after": 7},
    {"at": 101.5, "kind": "stall", "target": "b", "seconds": 2.0},
    {"at": 102.0, "kind": "starve", "seconds": 1.0},
]


def told(report: Report, folder: Path) -> str:
    return "\n".join(postmortem(report, folder))


def test_faults_ends_and_logs_of_a_source_that_lost_items(tmp_path: Path) -> None:
    (tmp_path / "a.collector.log").write_text("".join(f"line {number}\n" for number in range(LINES + 1)))
    (tmp_path / "b.collector.log").write_text("of the other one\n")
    (tmp_path / "query.log").write_text("of Spark\n")
    report = Report(7, 60.0, "rev", log=FAULTS, ends=[End("collector a", 101.0, -9)])
    report.verdicts = [Verdict("a", lost=1), Verdict("b")]
    text = told(report, tmp_path)
    assert "   0.000 cut after=7\n   1.000 collector a ended with -9\n   2.000 starve seconds=1.0\n" in text
    assert f"line {LINES}" in text and "of Spark" in text
    assert "line 0\n" not in text
    assert "stall" not in text and "of the other one" not in text


def test_source_with_a_process_that_ended_badly_is_told_of(tmp_path: Path) -> None:
    verdicts = [Verdict("a"), Verdict("a-b")]
    assert "== a:" in told(Report(7, 60.0, "rev", verdicts=verdicts, complaints=["collector a ended with 1"]), tmp_path)
    text = told(Report(7, 60.0, "rev", verdicts=verdicts, stuck=["collector a-b"]), tmp_path)
    assert "== a-b:" in text and "== a:" not in text


def test_nothing_is_told_of_what_is_sound(tmp_path: Path) -> None:
    assert told(Report(7, 60.0, "rev", log=FAULTS, verdicts=[Verdict("a")]), tmp_path) == ""
