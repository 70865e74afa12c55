from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import INTEROP, SECONDS, Weirpool, assert_one_line, command, serving
from tests.serving.served import until


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_stream_is_recorded_with_demand_and_end(weirpool: Weirpool, server: str, tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    result = weirpool("record", server, "count", "-d", "5", "--credit", "2", "-o", str(path))
    assert result.code == 0
    head, request, *rest = lines_of(path)
    assert (head["weirpool_recording"], head["url"]) == (1, server)
    assert (request["event"], request["kind"], request["route"], request["data"]) == ("request", "stream", "count", "5")
    assert [each["data"] for each in rest if each["event"] == "item"] == ["0", "1", "2", "3", "4"]
    assert max(each["n"] for each in rest if each["event"] == "demand") == 2
    assert rest[-1]["event"] == "end"
    times = [each["t"] for each in (request, *rest)]
    assert times == sorted(times)


@pytest.mark.parametrize(("kind", "route"), [("channel", "double"), ("upload", "sum")])
def test_items_of_both_sides_are_recorded(
    weirpool: Weirpool, server: str, tmp_path: Path, kind: str, route: str
) -> None:
    path = tmp_path / "recording.jsonl"
    items = tmp_path / "items"
    items.write_text("2\n3\n")
    arguments = ("--kind", kind, "-d", "1", "--items", f"@{items}", "-o", str(path))
    assert weirpool("record", server, route, *arguments).code == 0
    found = [(each["event"], each["data"]) for each in lines_of(path)[1:] if "data" in each]
    assert [data for event, data in found if event == "sent"] == ["2", "3"]
    assert [data for event, data in found if event == "item"] == {"channel": ["2", "4", "6"], "upload": ["6"]}[kind]


def test_error_is_recorded_and_reported(weirpool: Weirpool, server: str, tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    result = weirpool("record", server, "fail", "--kind", "call", "-o", str(path))
    assert result.code == 1
    assert "boom" in result.err
    last = lines_of(path)[-1]
    assert (last["event"], last["code"], last["message"]) == ("error", 0x301, "boom")


def test_take_is_recorded_as_a_cancellation(weirpool: Weirpool, server: str, tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    assert weirpool("record", server, "count", "-d", "1000000", "--take", "3", "-o", str(path)).code == 0
    assert lines_of(path)[-1]["event"] == "cancel"


def test_no_server_is_exit_code_3(weirpool: Weirpool, tmp_path: Path) -> None:
    result = weirpool("record", "rsocket+tcp://127.0.0.1:1", "x", "-o", str(tmp_path / "recording.jsonl"))
    assert result.code == 3
    assert "cannot be reached" in result.err


def test_lost_server_is_exit_code_3(weirpool: Weirpool, tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    with serving(f"{INTEROP}:service", "rsocket+tcp://127.0.0.1:0") as (process, [url]):
        arguments = command("record", url, "slow", "-d", "60000", "--kind", "call", "-o", str(path))
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as recording:
            until(lambda: path.exists() and '"request"' in path.read_text(), SECONDS)
            process.kill()
            recording.communicate(timeout=SECONDS)
    assert recording.returncode == 3


def test_saved_contexts_name_the_server(
    weirpool: Weirpool, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("WEIRPOOL_CONTEXT", raising=False)
    weirpool("context", "add", "dev", server)
    path = tmp_path / "recording.jsonl"
    for place in (["@dev"], []):
        assert weirpool("record", *place, "count", "-d", "3", "-o", str(path), "--yes").code == 0
        assert lines_of(path)[0]["url"] == server
    result = weirpool("replay", str(path), "--to", "@dev", "double", "--speed", "max")
    assert (result.code, result.lines[-2:]) == (0, [b"2", b"4"])
    # Metadata may contain credentials.
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("-o", "x"),
        ("rsocket+tcp://127.0.0.1:1", "-o", "x"),
        ("rsocket+tcp://127.0.0.1:1", "x", "--listen", "rsocket+tcp://:0", "-o", "x"),
        ("--listen", "rsocket+tcp://:0", "-o", "x"),
        ("rsocket+tcp://127.0.0.1:1", "x", "-o", "/no/such/folder/file"),
        ("rsocket+tcp://127.0.0.1:1", "x", "-o", "x", "--kind", "dance"),
        ("--listen", "rsocket+tcp://:0", "--to", "rsocket+tcp://127.0.0.1:1", "-o", "x", "--timeout", "1"),
    ],
)
def test_wrong_use_is_exit_code_2(
    weirpool: Weirpool, arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = weirpool("record", *arguments)
    assert result.code == 2
    assert_one_line(result)


def test_everything_that_passes_a_proxy_is_recorded(weirpool: Weirpool, server: str, tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    arguments = command("record", "--listen", "river+tcp://127.0.0.1:0", "--to", server, "-o", str(path))
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().removeprefix("listening on ").strip()
            assert weirpool("call", url, "interop.echo", "-d", '{"data":1}').out == b'{"data":1}\n'
            assert len(weirpool("stream", url, "interop.count", "-d", '{"n":3}').lines) == 3
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    assert process.returncode == 0
    requests = [each["route"] for each in lines_of(path) if each.get("event") == "request"]
    assert requests == ["interop.echo", "interop.count"]


def test_killed_recorder_leaves_a_usable_file(weirpool: Weirpool, server: str, tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    arguments = command("record", server, "count", "-d", "100000000", "-o", str(path))
    with subprocess.Popen(arguments, stderr=subprocess.DEVNULL) as process:
        try:
            while not path.exists() or path.stat().st_size < 100_000:
                assert process.poll() is None
        finally:
            process.kill()
    sent = weirpool("replay", str(path), "--to", server, "sum", "--kind", "upload", "--speed", "max")
    assert sent.code == 0, sent.err
    assert int(sent.out) > 1_000
