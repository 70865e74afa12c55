from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import SECONDS, Weirpool, assert_one_line, command


@contextmanager
def bridging(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `weirpool bridge`; yield the process and the URL on which it listens."""
    process = subprocess.Popen(
        command("bridge", *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )
    with process:
        try:
            assert process.stdout is not None and process.stderr is not None
            line = process.stdout.readline()
            assert line.startswith("listening on "), process.stderr.read()
            yield process, line.removeprefix("listening on ").strip()
        finally:
            process.kill()


def test_river_clients_use_a_server_of_rsocket(weirpool: Weirpool, server: str) -> None:
    with bridging("river+tcp://127.0.0.1:0", server, "--log", "json", "--stats") as (process, url):
        assert weirpool("call", url, "interop.echo", "-d", '{"data":1}').out == b'{"data":1}\n'
        assert weirpool("stream", url, "interop.count", "-d", '{"n":3}').lines == [b'{"n":0}', b'{"n":1}', b'{"n":2}']
        assert weirpool("upload", url, "interop.sum", '{"n":4}', "-d", '{"n":3}').out == b'{"n":7}\n'
        failed = weirpool("call", url, "interop.fail", "-d", '{"n":3}')
        assert failed.code == 1
        assert "boom" in failed.err
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=SECONDS)
    lines = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
    assert process.returncode == 0
    assert lines[-1]["requests"] == {"stream": 3, "channel": 1}
    assert lines[0]["logger"] == "weirpool.bridge"


def test_upstream_that_is_down_is_exit_code_1(weirpool: Weirpool) -> None:
    with bridging("rsocket+tcp://127.0.0.1:0", "rsocket+tcp://127.0.0.1:1") as (_, url):
        result = weirpool("call", url, "echo")
    assert result.code == 1
    assert "the upstream tcp://127.0.0.1:1 cannot be reached" in result.err
    assert_one_line(result)


def test_setup_credentials_are_those_of_the_bridge(weirpool: Weirpool, seen: str) -> None:
    options = ("--to-setup-auth", "bearer:t0ken", "--to-set", "credit=7")
    with bridging("rsocket+tcp://127.0.0.1:0", seen, *options) as (_, url):
        assert weirpool("call", url, "setup").objects[0]["auth"] == ["Bearer", "", "t0ken"]


def test_upstream_is_a_saved_context_with_its_credentials(
    weirpool: Weirpool, seen: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    weirpool("context", "add", "there", seen, "--setup-auth", "bearer:t0ken")
    with bridging("rsocket+tcp://127.0.0.1:0", "@there") as (_, url):
        assert weirpool("call", url, "setup").objects[0]["auth"] == ["Bearer", "", "t0ken"]
    with bridging("rsocket+tcp://127.0.0.1:0", "@there", "--to-setup-auth", "bearer:other") as (_, url):
        assert weirpool("call", url, "setup").objects[0]["auth"] == ["Bearer", "", "other"]


@pytest.mark.parametrize(
    "options",
    [
        ("--kind", "echo"),
        ("--kind", "echo=dance"),
        ("--schema", "no-such-file.json"),
        ("--log", "xml"),
        ("--to-set", "nothing=1"),
    ],
)
def test_wrong_option_is_exit_code_2(weirpool: Weirpool, options: tuple[str, str]) -> None:
    result = weirpool("bridge", "rsocket+tcp://127.0.0.1:0", "rsocket+tcp://127.0.0.1:1", *options)
    assert result.code == 2
    assert_one_line(result)


def test_port_in_use_is_exit_code_3(weirpool: Weirpool, server: str) -> None:
    result = weirpool("bridge", server, "rsocket+tcp://127.0.0.1:1")
    assert result.code == 3
    assert_one_line(result)
