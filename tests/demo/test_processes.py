from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow
import pytest

from weirpool.demo import processes
from weirpool.demo.pipeline import rows_of
from weirpool.demo.processes import DemoFailed, collector, publisher
from weirpool.journal import Journal


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of a script that runs instead of Python, and that tests write."""
    script = tmp_path / "python"
    script.touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    return script


def test_publisher_ends_with_the_demo() -> None:
    with publisher() as url:
        assert url.startswith("rsocket+tcp://127.0.0.1:")
        assert not url.endswith(":0")
    # The process has ended, so its port can be bound again.
    with publisher() as other:
        assert other


def test_publisher_that_fails_to_start_is_an_error(python: Path) -> None:
    python.write_text("#!/bin/sh\necho 'no such module'\n")
    with pytest.raises(DemoFailed, match="the publisher did not start; its output is 'no such module'"):
        with publisher():
            pass


def test_collector_runs_and_its_end_is_detected(python: Path, tmp_path: Path) -> None:
    python.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/arguments\n')
    with collector("rsocket+tcp://127.0.0.1:7", "flights", tmp_path / "journal") as process:
        assert process.wait(60) == 0
    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert arguments[:5] == ["-m", "weirpool", "collect", "rsocket+tcp://127.0.0.1:7", "flights"]
    assert arguments[arguments.index("--journal") + 1] == str(tmp_path / "journal")


@pytest.mark.parametrize("ears", ["", "trap '' TERM\n"], ids=["told", "killed"])
def test_running_process_is_stopped(python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ears: str) -> None:
    monkeypatch.setattr(processes, "STOP_SECONDS", 0.0 if ears else 60.0)
    python.write_text(f"#!/bin/sh\n{ears}echo > {tmp_path}/begun\nwhile :; do sleep 0.01; done\n")
    with collector("rsocket+tcp://127.0.0.1:7", "flights", tmp_path / "journal") as process:
        while not (tmp_path / "begun").exists():
            assert process.poll() is None
    assert process.returncode is not None and process.returncode < 0


def test_what_processes_of_spark_print_goes_to_a_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "spark.log"
    with processes._errors_to(log):
        subprocess.run(["sh", "-c", "echo a warning >&2"], check=True)
    subprocess.run(["sh", "-c", "echo shown >&2"], check=True)
    assert log.read_text() == "a warning\n"
    assert capfd.readouterr().err == "shown\n"


def test_rows_are_counted_while_they_are_collected(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    assert rows_of(journal, "flights") == 0
    with Journal(journal).writer("flights", fsync=False) as writer:
        data = pyarrow.array([b"one", b"two"])
        writer.append(pyarrow.record_batch({"data": data, "metadata": pyarrow.nulls(2, pyarrow.binary())}), "here")
    assert rows_of(journal, "flights") == 2
