"""Completion of routes: from the server, within its time, and silent."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Weirpool, serving
from tests.cli.test_audit import GUARDED
from tests.cli.test_describe import QUOTES
from weirpool.cli import reflecting, routes
from weirpool.cli.contexts import Contexts, Saved, save
from weirpool.cli.routes import MAX_BYTES, MAX_FILES, MAX_ROUTES, SWITCH, routes_at
from weirpool.reflection.description import Described, Description


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache of its own, and time enough for slow machines."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(routes, "SECONDS", 20.0)
    return tmp_path / "weirpool" / "routes"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(QUOTES, "rsocket+tcp://127.0.0.1:0", options=["--reflection"]) as (_, [found]):
        yield found


@pytest.fixture
def candidates(weirpool: Weirpool, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    """What fish would offer after some words, without the help."""

    def asked(line: str) -> list[str]:
        with monkeypatch.context() as patch:
            patch.setenv("_WEIRPOOL_COMPLETE", "complete_fish")
            patch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
            patch.setenv("_TYPER_COMPLETE_ARGS", f"weirpool {line}")
            result = weirpool()
        assert result.err == ""
        return [found.partition("\t")[0] for found in result.out.decode().splitlines() if found]

    return asked


def test_completes_routes_of_the_verbs_kind(url: str, candidates: Callable[[str], list[str]]) -> None:
    assert candidates(f"call {url} q") == ["quotes.latest"]
    assert candidates(f"stream --timeout 3 {url} ") == ["numbers", "quotes.live"]
    assert candidates(f"describe {url} quotes") == ["quotes.latest", "quotes.live"]
    assert candidates("call q") == candidates(f"call {url} quotes.latest ") == []


def test_completes_routes_of_the_current_context(
    url: str, candidates: Callable[[str], list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    save(Contexts("dev", {"dev": Saved(url)}))
    assert candidates("call q") == candidates("call @dev q") == ["quotes.latest"]
    assert "quotes.latest" in candidates("call ")


def test_asks_with_the_credentials_of_the_command_and_of_its_context(
    candidates: Callable[[str], list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with serving(GUARDED, "rsocket+tcp://127.0.0.1:0", options=["--reflection"]) as (_, [guarded]):
        save(Contexts("", {"dev": Saved(guarded, {"setup_auth": "bearer:t0ken"})}))
        assert candidates(f"stream {guarded} n") == candidates(f"stream --setup-auth bearer:no {guarded} n") == []
        assert candidates(f"stream --setup-auth bearer:t0ken {guarded} n") == ["numbers"]
        assert candidates("stream @dev n") == candidates("stream --context dev n") == ["numbers"]


def test_remembers_the_answer_for_a_while(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(QUOTES, "rsocket+tcp://127.0.0.1:0", options=["--reflection"]) as (_, [url]):
        assert routes_at(url, "tre") == ["tree"]
    assert routes_at(url, "tre") == ["tree"]
    assert os.stat(cache).st_mode & 0o077 == 0
    monkeypatch.setattr(routes, "FRESH_SECONDS", 0.0)
    assert routes_at(url, "tre") == []


def test_a_server_that_does_not_answer_costs_its_time_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"rsocket+tcp://127.0.0.1:{silent.getsockname()[1]}"
        assert routes_at(url) == []
        monkeypatch.setattr(routes, "_asked", lambda url, used: pytest.fail("asked again"))
        assert routes_at(url) == []


@pytest.mark.parametrize(
    "url", ["", "x", "rsocket+tcp://127.0.0.1:1", "rsocket+tcp://[", "river+unix:///none", "@\udcff"]
)
def test_never_fails_and_never_prints(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert routes_at(url) == []
    assert capfd.readouterr() == ("", "")


def test_can_be_switched_off(url: str, monkeypatch: pytest.MonkeyPatch, candidates: Callable[[str], list[str]]) -> None:
    monkeypatch.setenv(SWITCH, "0")
    assert routes_at(url) == [] == candidates(f"call {url} q")


def test_a_cache_that_cannot_be_used_is_not_needed(url: str, cache: Path) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_text("a file")
    assert routes_at(url, "tre") == ["tree"]


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b"x" * 2_000_000])
def test_damaged_files_are_replaced(url: str, cache: Path, content: bytes) -> None:
    assert routes_at(url, "tre") == ["tree"]
    [file] = cache.iterdir()
    file.write_bytes(content)
    assert routes_at(url, "tre") == ["tree"] and file.read_bytes() != content


def test_the_cache_is_bounded(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "_asked", lambda url, used: [("call", "a"), ("call", "b\x1b[2J")])
    for number in range(MAX_FILES + 10):
        assert routes_at(f"rsocket+tcp://host:{number}") == ["a"]
    assert len(list(cache.iterdir())) <= MAX_FILES


def test_a_server_with_very_many_routes_is_remembered_in_part(
    url: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    routes_of = [Described(f"a{number}", "call") for number in range(3 * MAX_ROUTES)]
    description = Description(1, routes=[Described("a" * 1_000, "call"), *routes_of])

    async def fetch(url: str, options: object, auth: object) -> Description:
        return description

    monkeypatch.setattr(reflecting, "fetch", fetch)
    assert len(routes_at(url, "a")) == MAX_ROUTES
    [file] = cache.iterdir()
    assert file.stat().st_size <= MAX_BYTES
    monkeypatch.setattr(routes, "_asked", lambda url, used: pytest.fail("asked again"))
    assert len(routes_at(url, "a")) == MAX_ROUTES
    # Shells do not complete after a brace.
    assert routes_at(url, "{") == []
