"""Collectors of many feeds that serve their journals."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import SECONDS, Weirpool, assert_one_line
from tests.cli.test_feeds import collecting, logged, write
from tests.serving.served import until
from weirpool.errors import JournalError, JournalMissing
from weirpool.journal import Journal

TOKENS = ("WEIRPOOL_SERVE_TOKEN", "WEIRPOOL_JOURNAL_TOKEN")


@pytest.fixture(autouse=True)
def no_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in TOKENS:
        monkeypatch.delenv(name, raising=False)


def feed(name: str, rows: int, journal: str = "") -> str:
    return f'[feed.{name}]\nroute = "count"\ndata = "{rows}"\njournal = "{journal or name}"\n'


def served_on(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("serving the journals on "), line
    return line.split()[-1]


def reads(url: str, source: str, rows: int) -> Callable[[], bool]:
    """Return whether a log that may not be there yet has so many rows."""

    def check() -> bool:
        try:
            reader = Journal(url).reader(source)
        except JournalError:
            return False
        return sum(batch.num_rows for batch in reader.read(0, reader.end)) == rows

    return check


@pytest.mark.parametrize("workers", ["0", pytest.param("2", marks=pytest.mark.slow)])
def test_all_journals_are_served_at_one_address_across_reloads(server: str, tmp_path: Path, workers: str) -> None:
    path = write(tmp_path / "feeds.toml", server, feed("one", 500) + feed("two", 300))
    options = ("--serve", "rsocket+tcp://127.0.0.1:0", "--workers", workers)
    with collecting(path, *options) as (process, _):
        url = served_on(process)
        until(reads(f"{url}?journal=one", "one", 500), SECONDS)
        until(reads(f"{url}?journal=two", "two", 300), SECONDS)
        kept = Journal(f"{url}?journal=one").reader("one")
        write(path, server, feed("one", 500) + feed("three", 7))
        os.kill(process.pid, signal.SIGHUP)
        until(reads(f"{url}?journal=three", "three", 7), SECONDS)
        with pytest.raises(JournalMissing, match="those that are: one, three"):
            Journal(f"{url}?journal=two").reader("two")
        kept.refresh()
        assert kept.end == 500
        assert (tmp_path / "one" / "_served.json").exists()
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    assert "Traceback" not in err
    assert not [*tmp_path.glob("*/_served*")]
    # The logs of a feed that was removed stay.
    assert Journal(tmp_path / "two").reader("two").end == 300


def test_names_that_a_reload_makes_unclear_change_nothing(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = '[serve]\nurl = "rsocket+tcp://127.0.0.1:0"\ntoken = {file = "token"}\n'
    (tmp_path / "token").write_text("s3cret\n")
    path = write(tmp_path / "feeds.toml", server, table + feed("a", 5, "x/market"))
    with collecting(path) as (process, _):
        url = served_on(process)
        with pytest.raises(JournalError, match="missing or wrong"):
            Journal(url).sources()
        monkeypatch.setenv("WEIRPOOL_JOURNAL_TOKEN", "s3cret")
        until(reads(f"{url}?journal=market", "a", 5), SECONDS)
        write(path, server, table + feed("a", 5, "x/market") + feed("b", 6, "y/market"))
        os.kill(process.pid, signal.SIGHUP)
        assert "serve.journals: " in logged(process, "the same journals are served as before")
        assert reads(url, "a", 5)()
        names = f'[serve.journals]\nother = "{tmp_path / "y" / "market"}"\n'
        write(path, server, table + names + feed("a", 5, "x/market") + feed("b", 6, "y/market"))
        os.kill(process.pid, signal.SIGHUP)
        until(reads(f"{url}?journal=other", "b", 6), SECONDS)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=SECONDS)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("text", "options", "part"),
    [
        (feed("a", 1, "x/m") + feed("b", 1, "y/m"), ("--serve", "rsocket+tcp://127.0.0.1:0"), "served as 'm'"),
        (feed("a", 1), ("--serve", "rsocket+tcp://0.0.0.0:0"), "require a token in the variable WEIRPOOL_SERVE_TOKEN"),
        ('[serve]\nurl = "rsocket+tcp://127.0.0.1:0"\n' + feed("a", 1), ("--serve", "rsocket+tcp://:1"), "not both"),
        ('[serve]\nurl = "rsocket+tcp://127.0.0.1:0"\nkey = "k"\n' + feed("a", 1), (), "a key needs its certificate"),
        (feed("a", 1), ("--serve", "river+tcp://127.0.0.1:0"), "carries values"),
    ],
)
def test_what_is_not_clear_or_not_safe_is_refused(
    weirpool: Weirpool, tmp_path: Path, text: str, options: tuple[str, ...], part: str
) -> None:
    path = write(tmp_path / "feeds.toml", "rsocket+tcp://127.0.0.1:1", text)
    for check in (("--check",), ()):
        result = weirpool("collect", "--config", str(path), *options, *check)
        assert result.code == 2
        assert_one_line(result)
        assert part in result.err
    assert not [*tmp_path.glob("*/_served*")]


def test_check_names_what_would_be_served(weirpool: Weirpool, tmp_path: Path) -> None:
    path = write(tmp_path / "feeds.toml", "rsocket+tcp://h:1", feed("a", 1, "x/market"))
    result = weirpool("collect", "--config", str(path), "--check", "--serve", "rsocket+tcp://127.0.0.1:0")
    assert (result.code, result.err) == (0, "")
    assert result.lines[-1].decode() == f"{tmp_path}/x/market: served as market"
