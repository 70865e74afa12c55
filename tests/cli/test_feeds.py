from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import SECONDS, Weirpool, assert_one_line, command
from weirpool.cli.feeds import address_of
from weirpool.errors import LocalError
from weirpool.journal import Journal


def write(path: Path, server: str, text: str) -> Path:
    path.write_text(f'[defaults]\nurl = "{server}"\njournal = "journal"\n{text}')
    return path


@contextmanager
def collecting(path: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `weirpool collect --config`; yield the process and the URL of its status."""
    arguments = command("collect", "--config", str(path), "--http", "0", *options)
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            line = process.stdout.readline()
            assert line.startswith("status on "), process.stderr.read()
            yield process, line.removeprefix("status on ").strip()
        finally:
            process.kill()


def logged(process: subprocess.Popen[str], part: str) -> str:
    """Return the next line of a process's log that contains a text."""
    assert process.stderr is not None
    return next(line for line in process.stderr if part in line)


def rows(journal: Path, source: str) -> int:
    reader = Journal(journal).reader(source)
    return reader.end - reader.first


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_feeds_are_collected_until_a_signal(number: signal.Signals, code: int, server: str, tmp_path: Path) -> None:
    path = write(tmp_path / "feeds.toml", server, '[feed.a]\nroute = "count"\ndata = "500"\n[feed.b]\nroute = "no"\n')
    with collecting(path) as (process, url):
        logged(process, "a: complete at position 500")
        with urllib.request.urlopen(f"{url}status", timeout=SECONDS) as response:
            assert {feed["name"] for feed in json.load(response)["feeds"]} <= {"a", "b"}
        # A changed file is applied at SIGHUP.
        write(path, server, '[feed.c]\nroute = "count"\ndata = "7"\n')
        os.kill(process.pid, signal.SIGHUP)
        logged(process, "c: complete at position 7")
        process.send_signal(number)
        _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == code
    assert "Traceback" not in err
    assert [rows(tmp_path / "journal", name) for name in ("a", "c")] == [500, 7]


@pytest.mark.slow
def test_workers_stop_with_their_parent(server: str, tmp_path: Path) -> None:
    path = write(tmp_path / "feeds.toml", server, '[feed.a]\nroute = "count"\ndata = "5"\n')
    with collecting(path, "--workers", "2", "--log", "json") as (process, _):
        assert json.loads(logged(process, "complete"))["message"] == "a: complete at position 5"
        process.terminate()
        process.communicate(timeout=SECONDS)
    assert process.returncode == 0


def test_check_shows_what_would_run(weirpool: Weirpool, tmp_path: Path) -> None:
    path = write(
        tmp_path / "f.toml", "rsocket+tcp://h:1", '[feed.a]\nroute = "r"\n[feed.b]\nroute = "r"\nenabled = false\n'
    )
    result = weirpool("collect", "--config", str(path), "--check")
    assert (result.code, result.err) == (0, "")
    journal = tmp_path / "journal"
    assert result.out.decode() == f"a: r from rsocket+tcp://h:1 into {journal}, log a\nb: not enabled\n"
    assert not journal.exists()


def test_check_names_every_problem(weirpool: Weirpool, tmp_path: Path) -> None:
    text = '[feed.a]\nroute = "r"\nauth = {env = "NOT_SET_ANYWHERE"}\n[feed.b]\nrotue = "r"\n'
    path = write(tmp_path / "f.toml", "rsocket+tcp://h:1", text)
    result = weirpool("collect", "--config", str(path), "--check")
    assert result.code == 2
    assert "feed 'b': rotue is not known; did you mean 'route'?" in result.err
    assert "feed 'a': auth: the environment variable 'NOT_SET_ANYWHERE' is not set" in result.err


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--config", "nowhere.toml"), "cannot read the feeds"),
        (("--config", "F", "rsocket+tcp://h:1", "r"), "without URL"),
        (("--config", "F", "-j", "x"), "without URL"),
        (("--config", "F", "--log", "xml"), "use text or json"),
        (("--config", "F", "--http", "x"), "is not [HOST:]PORT"),
        (("--config", "F", "--http-name", "box"), "use both"),
        (("--config", "F"), "rotue is not known"),
        (("rsocket+tcp://h:1", "r"), "--journal"),
        ((), "--config FILE for many"),
    ],
)
def test_wrong_use_is_exit_code_2(weirpool: Weirpool, tmp_path: Path, arguments: tuple[str, ...], part: str) -> None:
    path = write(tmp_path / "f.toml", "rsocket+tcp://h:1", '[feed.a]\nrotue = "r"\n')
    result = weirpool("collect", *(str(path) if each == "F" else each for each in arguments))
    assert result.code == 2
    assert_one_line(result)
    assert part in result.err


def test_addresses() -> None:
    assert address_of("7880") == ("127.0.0.1", 7880)
    assert address_of("0.0.0.0:80") == ("0.0.0.0", 80)
    assert address_of("[::1]:80") == ("::1", 80)
    for text in ("", "x", "h:", "65536", "1:2:x"):
        with pytest.raises(LocalError):
            address_of(text)
