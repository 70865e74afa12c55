from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Penstock, assert_one_line


@pytest.fixture(autouse=True)
def configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep contexts in a folder of the test."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("PENSTOCK_CONTEXT", raising=False)


def test_verbs_use_the_current_context(penstock: Penstock, server: str) -> None:
    assert penstock("context", "add", "dev", server).out.decode() == f"dev: {server} (current)\n"
    assert penstock("call", "echo", "-d", "hello").out == b"hello\n"
    assert penstock("call", "@dev", "echo", "-d", "hello").out == b"hello\n"
    assert penstock("call", "echo", "-d", "hello", "--context", "dev").out == b"hello\n"
    assert penstock("stream", "count", "-d", "2").lines == [b"0", b"1"]


def test_options_of_a_context_are_defaults(penstock: Penstock, server: str) -> None:
    penstock("context", "add", "dev", server, "--auth", "bearer:one", "--data-mime", "text/plain")
    metadata = penstock("call", "echo", "--json").objects[0]["metadata_hex"]
    assert b"one".hex() in metadata
    metadata = penstock("call", "echo", "--json", "--auth", "bearer:two").objects[0]["metadata_hex"]
    assert b"two".hex() in metadata and b"one".hex() not in metadata


def test_contexts_are_listed_without_secrets(penstock: Penstock, server: str) -> None:
    penstock("context", "add", "dev", server, "--auth", "bearer:secret", "--setup", "secret")
    penstock("context", "add", "prod", server, "--auth", "simple:me:env:PASSWORD", "--setup-auth", "@/run/token")
    listed = penstock("context", "ls")
    assert b"secret" not in listed.out and b"dev" in listed.out and b"prod" in listed.out
    shown = penstock("context", "show", "--json").objects[0]
    assert shown == {"url": server, "current": True, "options": {"auth": "(hidden)", "setup": "(hidden)"}}
    assert penstock("context", "show", "prod").lines[1:] == [
        b"  --setup-auth @/run/token",
        b"  --auth simple:me:env:PASSWORD",
    ]
    assert json.loads(penstock("context", "ls", "--json").out)["prod"]["current"] is False


def test_current_context_changes(penstock: Penstock, server: str) -> None:
    penstock("context", "add", "dev", server)
    penstock("context", "add", "prod", "rsocket+tls://prod.example:7878")
    assert penstock("context", "use", "prod").out == b"prod: rsocket+tls://prod.example:7878\n"
    assert penstock("context", "show", "--json").objects[0]["url"] == "rsocket+tls://prod.example:7878"
    assert penstock("context", "use", "-").code == 0
    assert penstock("context", "show").code == 2
    penstock("context", "rm", "prod")
    unknown = penstock("context", "use", "prod")
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
def test_invalid_context_is_refused(penstock: Penstock, arguments: tuple[str, ...], problem: str) -> None:
    result = penstock("context", "add", *arguments)
    assert result.code == 2 and problem in result.err
    assert_one_line(result)
