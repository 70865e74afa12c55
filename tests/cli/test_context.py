from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Weirpool, assert_one_line


@pytest.fixture(autouse=True)
def configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep contexts in a folder of the test."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("WEIRPOOL_CONTEXT", raising=False)


def test_verbs_use_the_current_context(weirpool: Weirpool, server: str) -> None:
    assert weirpool("context", "add", "dev", server).out.decode() == f"dev: {server} (current)\n"
    assert weirpool("call", "echo", "-d", "hello").out == b"hello\n"
    assert weirpool("call", "@dev", "echo", "-d", "hello").out == b"hello\n"
    assert weirpool("call", "echo", "-d", "hello", "--context", "dev").out == b"hello\n"
    assert weirpool("stream", "count", "-d", "2").lines == [b"0", b"1"]


def test_options_of_a_context_are_defaults(weirpool: Weirpool, server: str) -> None:
    weirpool("context", "add", "dev", server, "--auth", "bearer:one", "--data-mime", "text/plain")
    metadata = weirpool("call", "echo", "--json").objects[0]["metadata_hex"]
    assert b"one".hex() in metadata
    metadata = weirpool("call", "echo", "--json", "--auth", "bearer:two").objects[0]["metadata_hex"]
    assert b"two".hex() in metadata and b"one".hex() not in metadata


def test_contexts_are_listed_without_secrets(weirpool: Weirpool, server: str) -> None:
    weirpool("context", "add", "dev", server, "--auth", "bearer:secret", "--setup", "secret")
    weirpool("context", "add", "prod", server, "--auth", "simple:me:env:PASSWORD", "--setup-auth", "@/run/token")
    listed = weirpool("context", "ls")
    assert b"secret" not in listed.out and b"dev" in listed.out and b"prod" in listed.out
    shown = weirpool("context", "show", "--json").objects[0]
    assert shown == {"url": server, "current": True, "options": {"auth": "(hidden)", "setup": "(hidden)"}}
    assert weirpool("context", "show", "prod").lines[1:] == [
        b"  --setup-auth @/run/token",
        b"  --auth simple:me:env:PASSWORD",
    ]
    assert json.loads(weirpool("context", "ls", "--json").out)["prod"]["current"] is False


def test_current_context_changes(weirpool: Weirpool, server: str) -> None:
    weirpool("context", "add", "dev", server)
    weirpool("context", "add", "prod", "rsocket+tls://prod.example:7878")
    assert weirpool("context", "use", "prod").out == b"prod: rsocket+tls://prod.example:7878\n"
    assert weirpool("context", "show", "--json").objects[0]["url"] == "rsocket+tls://prod.example:7878"
    assert weirpool("context", "use", "-").code == 0
    assert weirpool("context", "show").code == 2
    weirpool("context", "rm", "prod")
    unknown = weirpool("context", "use", "prod")
    assert unknown.code == 2
    assert_one_line(unknown)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("a b", "rsocket+tcp://h:1"), "is not a name for a context"),
        (("dev", "http://h:1"), "has no transport"),
        (("dev", "rsocket+tcp://h:1", "--set", "nonsense=1"), "nonsense"),
        (("dev", "rsocket+tcp://h:1", "--auth", "password"), "invalid credentials"),
        (("dev", "rsocket+tcp://h:1", "--setup-auth", "bearer:"), "invalid credentials"),
    ],
)
def test_invalid_context_is_refused(weirpool: Weirpool, arguments: tuple[str, ...], problem: str) -> None:
    result = weirpool("context", "add", *arguments)
    assert result.code == 2 and problem in result.err
    assert_one_line(result)
