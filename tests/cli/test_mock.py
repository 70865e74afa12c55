from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import INTEROP, Weirpool, assert_one_line, command


@contextmanager
def running(*arguments: str) -> Iterator[str]:
    """Run a verb that listens; yield its URL."""
    process = subprocess.Popen(
        command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )
    with process:
        try:
            assert process.stdout is not None and process.stderr is not None
            line = process.stdout.readline()
            assert line.startswith("listening on "), process.stderr.read()
            yield line.removeprefix("listening on ").strip()
        finally:
            process.kill()


def test_service_is_mocked_from_its_source(weirpool: Weirpool) -> None:
    with running("mock", f"{INTEROP}:service", "river+tcp://127.0.0.1:0", "--rate", "0", "--items", "3") as url:
        first = weirpool("stream", url, "interop.count", "-d", '{"n":9}')
        assert [list(each) for each in map(json.loads, first.lines)] == [["n"]] * 3
        assert weirpool("call", url, "interop.slow", "-d", '{"n":9}').code == 0


def test_schema_file_is_mocked(weirpool: Weirpool, tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    procedure = {"type": "rpc", "output": {"const": "hello"}}
    path.write_text(json.dumps({"services": {"a": {"procedures": {"b": procedure}}}}))
    with running("mock", str(path), "rsocket+tcp://127.0.0.1:0") as url:
        assert weirpool("call", url, "a.b").out == b'"hello"\n'
    with running("mock", str(path), "rsocket+tcp://127.0.0.1:0", "--errors", "1") as url:
        failed = weirpool("call", url, "a.b")
        assert failed.code == 1
        assert_one_line(failed)


def test_server_is_mocked_by_its_context_and_by_its_printed_description(
    weirpool: Weirpool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = tmp_path / "described.json"
    with running("serve", f"{INTEROP}:service", "rsocket+tcp://127.0.0.1:0", "--reflection") as server:
        weirpool("context", "add", "there", server)
        path.write_bytes(weirpool("describe", "@there", "--json").out)
        with running("mock", "@there", "river+tcp://127.0.0.1:0") as url:
            answer = weirpool("call", url, "interop.slow", "-d", '{"n":9}').out
    with running("mock", str(path), "river+tcp://127.0.0.1:0") as url:
        assert weirpool("call", url, "interop.slow", "-d", '{"n":9}').out == answer
    assert answer.startswith(b'{"n":')


def test_recording_is_mocked(weirpool: Weirpool, server: str, tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    assert weirpool("record", server, "count", "-d", "3", "-o", str(path)).code == 0
    with running("mock", str(path), "rsocket+tcp://127.0.0.1:0", "--speed", "max") as url:
        assert weirpool("stream", url, "count", "-d", "3").lines == [b"0", b"1", b"2"]


@pytest.mark.parametrize("source", ["missing.json", "no_such_module:service"])
def test_wrong_source_is_exit_code_2(weirpool: Weirpool, source: str) -> None:
    result = weirpool("mock", source, "rsocket+tcp://127.0.0.1:0")
    assert result.code == 2
    assert_one_line(result)
