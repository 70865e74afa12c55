"""A collector that serves its journal."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import SECONDS, Weirpool, command
from weirpool.journal import Journal


def test_the_journal_is_read_through_the_collector(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIRPOOL_SERVE_TOKEN", "s3cret")
    monkeypatch.setenv("WEIRPOOL_JOURNAL_TOKEN", "s3cret")
    arguments = command(
        "collect", server, "count", "-d", "1000", "-j", str(tmp_path), "-q", "--serve", "rsocket+tcp://127.0.0.1:0"
    )
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("serving the journal on rsocket+tcp://127.0.0.1:")
        assert "the stream is complete" in process.stderr.readline()
        reader = Journal(line.split()[-1]).reader("count")
        assert sum(batch.num_rows for batch in reader.read(0, reader.end)) == 1_000
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, err) == (0, "")
    assert out == "collected 1,000 items; the journal ends at 1,000\n"


def test_other_machines_need_a_token(weirpool: Weirpool, server: str, tmp_path: Path) -> None:
    result = weirpool("collect", server, "count", "-j", str(tmp_path), "--serve", "rsocket+tcp://0.0.0.0:0")
    assert result.code != 0
    assert "clients need no credentials" in result.err and "the variable WEIRPOOL_SERVE_TOKEN" in result.err
