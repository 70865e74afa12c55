"""The CPU time of a process includes that of its descendants, also if they end."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.usage import Usage, child, is_supported

TICKS = os.sysconf("SC_CLK_TCK")


def stat(proc: Path, pid: int, parent: int, user: int, system: int, name: str = "python") -> None:
    """Write the files of a process, with its times in ticks."""
    (proc / f"{pid}").mkdir(parents=True, exist_ok=True)
    between = " ".join("0" for _ in range(9))
    (proc / f"{pid}" / "comm").write_text(f"{name}\n")
    (proc / f"{pid}" / "stat").write_text(f"{pid} ({name}) S {parent} {between} {user} {system} 5000 5000 20 0 1\n")


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """Process 7 with a child and a grandchild, process 10, and one that has just ended."""
    stat(tmp_path, 7, 1, 100, 20)
    stat(tmp_path, 8, 7, 1_000, 0, name="a) S 1 (b")
    stat(tmp_path, 9, 8, 0, 2_000)
    stat(tmp_path, 10, 1, 500, 0)
    (tmp_path / "11").mkdir()
    (tmp_path / "meminfo").touch()
    return tmp_path


def test_processes_count_with_their_descendants(proc: Path) -> None:
    with Usage({"family": 7, "other": 10, "none": 12}, proc) as usage:
        stat(proc, 7, 1, 110, 21)
        stat(proc, 9, 8, 5, 2_000)
        stat(proc, 10, 1, 501, 2)
    used = {name: seconds * TICKS for name, seconds in usage.seconds().items()}
    assert used == pytest.approx({"family": 16, "other": 3, "none": 0})
    assert usage.alone(7) * TICKS == pytest.approx(11)


def test_processes_count_if_they_begin_or_end_meanwhile(proc: Path) -> None:
    with Usage({"family": 7}, proc) as usage:
        stat(proc, 9, 8, 50, 2_000)
        stat(proc, 20, 9, 3, 4)
        usage.sample()
        for pid in (9, 20):
            shutil.rmtree(proc / f"{pid}")
    assert usage.seconds()["family"] * TICKS == pytest.approx(57)


def test_child_is_found_by_its_name(proc: Path) -> None:
    assert child(7, "a) S 1 (b", proc) == 8
    assert child(8, "python", proc) == 9
    with pytest.raises(LookupError, match="process 7 has no child 'java'"):
        child(7, "java", proc)


def test_machine_without_proc_is_not_supported(tmp_path: Path) -> None:
    assert not is_supported(tmp_path)
    assert is_supported()


def test_real_child_is_counted() -> None:
    code = "input()\nwhile __import__('time').process_time() < 0.2: pass\nprint(flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdin is not None and running.stdout is not None
        with Usage({"self": os.getpid()}) as usage:
            running.stdin.write(b"\n")
            running.stdin.flush()
            running.stdout.readline()
        assert usage.seconds()["self"] > usage.alone(os.getpid())
        running.communicate(b"\n")
