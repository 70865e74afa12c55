from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.feeds.helpers import feeds
from weirpool.feeds.status import FeedState, FeedStatus

SECONDS = 60


@pytest.mark.slow
def test_worker_reports_and_does_not_outlive_its_parent(tmp_path: Path) -> None:
    file = feeds(tmp_path, 'a url = "rsocket+unix:///nowhere/at-all"', "bad budget = 0")
    command = [sys.executable, "-m", "weirpool.feeds.worker", str(file.path), "0/1", "json"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.write(msgspec.json.encode(file.text) + b"\n")
        process.stdin.flush()
        first = msgspec.json.decode(process.stdout.readline(), type=list[FeedStatus])
        assert {status.name: status.state for status in first} == {"a": FeedState.CONNECTING, "bad": FeedState.REFUSED}
        process.stdin.close()
        assert process.wait(SECONDS) == 0
        logs = [msgspec.json.decode(line) for line in process.stderr.read().splitlines()]
    assert any("budget: 0 is not valid" in log["message"] for log in logs)


@pytest.mark.slow
def test_parent_that_does_not_read_holds_no_worker_up(tmp_path: Path) -> None:
    # More than a pipe holds.
    file = feeds(tmp_path, *(f'feed-{number} url = "rsocket+unix:///nowhere"' for number in range(400)))
    command = [sys.executable, "-m", "weirpool.feeds.worker", str(file.path), "0/1", "json"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(msgspec.json.encode(file.text) + b"\n")
        process.stdin.flush()
        # The report is on its way, and the rest of it is not read.
        assert process.stdout.read(1) == b"["
        process.stdin.close()
        try:
            assert process.wait(SECONDS) == 0
        finally:
            process.kill()


def test_worker_without_a_file_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "weirpool.feeds.worker", str(tmp_path / "feeds.toml"), "0/1", "text"]
    result = subprocess.run(command, input=b"", capture_output=True, timeout=SECONDS)
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")
