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


@pytest.mark.parametrize("number", [1, 2])
def test_what_processes_of_spark_print_goes_to_a_file(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], number: int
) -> None:
    log = tmp_path / "spark.log"
    log.write_text("first\n")
    with processes._output_to(log, number):
        subprocess.run(["sh", "-c", f"echo a warning >&{number}"], check=True)
    subprocess.run(["sh", "-c", f"echo shown >&{number}"], check=True)
    assert log.read_text() == "first\na warning\n"
    assert capfd.readouterr()[number - 1] == "shown\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it has ended"),
        (
            "\n[JAVA_GATEWAY_EXITED] Java gateway process exited.\n",
            "[JAVA_GATEWAY_EXITED] Java gateway process exited.",
        ),
        ("One.\n\tat a.B.c(D.scala:1)\nCaused by: e.F: two\n\tat g\nCaused by: e.G: three\n\t... 9 more", "e.G: three"),
        ("x" * 300, "x" * processes.REASON_CHARACTERS + "…"),
    ],
)
def test_reason_is_the_innermost_cause_in_one_line(text: str, reason: str) -> None:
    assert processes._reason(text) == reason


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("failure", ["query", "process"])
def test_failure_of_spark_is_one_line_that_names_its_log(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], failure: str
) -> None:
    script = f"""
import sys
from pathlib import Path
from weirpool.cli import demo, main, parser
from weirpool.demo.processes import spark_session

def invoke(arguments):
    with spark_session(Path({str(tmp_path / "spark.log")!r})) as spark:
        if {failure!r} == "process":
            spark._jvm.System.exit(3)
        rows = spark.readStream.format("rate").load().selectExpr("raise_error('no way')")
        query = rows.writeStream.format("noop").start()
        query.processAllAvailable()
        query.awaitTermination()

parser.invoke = invoke
main.run(["demo"])
"""
    done = subprocess.run([sys.executable, "-c", script], timeout=240)
    told = capfd.readouterr()
    assert (done.returncode, told.out) == (1, ""), told
    [line] = told.err.splitlines()
    assert line.startswith("weirpool: Spark failed: ")
    assert line.endswith(f"; its log is {tmp_path / 'spark.log'}")
    assert failure == "process" or "no way" in line
    assert "Traceback" in (tmp_path / "spark.log").read_text()


def test_rows_are_counted_while_they_are_collected(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    assert rows_of(journal, "flights") == 0
    with Journal(journal).writer("flights", fsync=False) as writer:
        data = pyarrow.array([b"one", b"two"])
        writer.append(pyarrow.record_batch({"data": data, "metadata": pyarrow.nulls(2, pyarrow.binary())}), "here")
    assert rows_of(journal, "flights") == 2
