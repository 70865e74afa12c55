from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from tests.cli.conftest import Weirpool, assert_one_line
from tests.cli.test_mock import running
from weirpool.cli.replay import speed_of
from weirpool.errors import LocalError


@pytest.fixture
def recording(weirpool: Weirpool, server: str, tmp_path: Path) -> str:
    path = tmp_path / "recording.jsonl"
    assert weirpool("record", server, "count", "-d", "4", "-o", str(path)).code == 0
    return str(path)


def test_recording_is_served_over_another_protocol(weirpool: Weirpool, recording: str) -> None:
    with running("replay", recording, "--listen", "reactive-streams+tcp://127.0.0.1:0", "--speed", "10") as url:
        assert weirpool("stream", url, "count", "-d", "4").lines == [b"0", b"1", b"2", b"3"]
        other = weirpool("call", url, "other")
        assert other.code == 1
        assert "the recording has no 'other'; it has 'count'" in other.err


def test_loop_repeats_a_stream(weirpool: Weirpool, recording: str) -> None:
    with running("replay", recording, "--listen", "rsocket+tcp://127.0.0.1:0", "--speed", "max", "--loop") as url:
        assert weirpool("stream", url, "count", "-d", "4", "--take", "6").lines == [b"0", b"1", b"2", b"3", b"0", b"1"]


def test_items_are_sent_to_a_server(weirpool: Weirpool, recording: str, server: str) -> None:
    sent = weirpool("replay", recording, "--to", server, "sum", "--kind", "upload", "--speed", "max")
    assert (sent.code, sent.out) == (0, b"6\n")
    doubled = weirpool("replay", recording, "--to", server, "double", "--speed", "max", "--stream", "1")
    assert doubled.lines == [b"0", b"2", b"4", b"6"]


@pytest.mark.parametrize(
    "options",
    [
        ("--speed", "0"),
        ("--speed", "fast"),
        ("--to", "rsocket+tcp://127.0.0.1:1"),
        ("route",),
        ("route", "--to", "rsocket+tcp://127.0.0.1:1", "--kind", "stream"),
        ("route", "--to", "rsocket+tcp://127.0.0.1:1", "--stream", "9"),
    ],
)
def test_wrong_use_is_exit_code_2(weirpool: Weirpool, recording: str, options: tuple[str, ...]) -> None:
    result = weirpool("replay", recording, *options)
    assert result.code == 2
    assert_one_line(result)


def test_no_server_is_exit_code_3(weirpool: Weirpool, recording: str) -> None:
    assert weirpool("replay", recording, "x", "--to", "rsocket+tcp://127.0.0.1:1").code == 3


def test_other_file_is_exit_code_2(weirpool: Weirpool, tmp_path: Path) -> None:
    path = tmp_path / "other"
    path.write_text('{"a": 1}\n')
    result = weirpool("replay", str(path))
    assert result.code == 2
    assert "is not a recording" in result.err


@pytest.mark.parametrize(("text", "speed"), [("1", 1.0), ("0.5", 0.5), ("max", inf)])
def test_speed_is_a_factor(text: str, speed: float) -> None:
    assert speed_of(text) == speed


@pytest.mark.parametrize("text", ["inf", "-1", "nan", ""])
def test_other_speeds_are_refused(text: str) -> None:
    with pytest.raises(LocalError):
        speed_of(text)
