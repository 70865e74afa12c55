from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import SECONDS, Weirpool, command
from weirpool.cli.listen import ListenOptions
from weirpool.errors import LocalError
from weirpool.journal import Journal


@contextmanager
def listening(journal: Path, *more: str, number: signal.Signals = signal.SIGTERM, code: int = 0) -> Iterator[str]:
    """Run the verb while the block runs; yields the URL."""
    arguments = command(
        "collect", "--listen", "rsocket+tcp://127.0.0.1:0", "--receive", "delays=late", "-j", str(journal)
    )
    process = subprocess.Popen([*arguments, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[-1]
        process.send_signal(number)
        out, err = process.communicate(timeout=SECONDS)
        assert (process.returncode, out) == (code, "")
        assert err.endswith("stopped; the same command continues from here\n")
    finally:
        process.kill()
        process.communicate()


def test_ctrl_c_has_its_own_exit_code(tmp_path: Path) -> None:
    with listening(tmp_path, number=signal.SIGINT, code=130):
        pass


def test_rows_are_received_from_clients_with_the_right_token(weirpool: Weirpool, tmp_path: Path) -> None:
    with listening(tmp_path, "--auth", "bearer:t0ken") as url:
        sent = weirpool("call", url, "delays", "-d", "late by 5", "--setup-auth", "bearer:t0ken")
        assert (sent.code, sent.err) == (0, "")
        refused = weirpool("call", url, "delays", "-d", "never", "--setup-auth", "bearer:other")
        assert refused.code != 0 and "credentials in the set-up are missing or wrong" in refused.err
    reader = Journal(tmp_path).reader("late")
    (batch,) = reader.read(0, reader.end)
    assert batch["data"].to_pylist() == [b"late by 5"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--receive", "a"), "--listen needs --journal"),
        (("-j", "x"), "--receive ROUTE"),
        (("-j", "x", "--receive", "a/b"), "cannot name a source"),
    ],
)
def test_mistakes_are_explained(weirpool: Weirpool, arguments: tuple[str, ...], why: str) -> None:
    result = weirpool("collect", "--listen", "rsocket+tcp://127.0.0.1:0", *arguments)
    assert result.code == 2 and why in result.err


def test_routes_have_logs_of_their_own() -> None:
    assert ListenOptions(receive=["a", "b=c"]).routes() == {"a": "a", "b": "c"}
    with pytest.raises(LocalError):
        ListenOptions().routes()
