from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Weirpool, assert_one_line

CANCEL = '{"type": "CANCEL", "stream_id": 1, "flags": []}'
REQUEST_N = '{"type": "REQUEST_N", "stream_id": 2, "flags": [], "request_n": 255}'
LINES = f"{CANCEL}\n\n{REQUEST_N}\n"
HEX = [b"000000012400", b"000000022000000000ff"]


def test_objects_come_from_argument_file_and_standard_input(weirpool: Weirpool, tmp_path: Path) -> None:
    file = tmp_path / "frames.json"
    file.write_text(LINES)
    for source in (LINES, str(file), "-"):
        result = weirpool("encode", source, stdin=LINES.encode())
        assert (result.code, result.lines) == (0, HEX)
    assert weirpool("encode", stdin=LINES.encode()).lines == HEX


@pytest.mark.parametrize(
    ("framing", "prefixes"), [("u24", [b"000006", b"00000a"]), ("u32-inclusive", [b"0000000a", b"0000000e"])]
)
def test_each_frame_has_a_length_prefix(weirpool: Weirpool, framing: str, prefixes: list[bytes]) -> None:
    result = weirpool("encode", "--framing", framing, LINES)
    assert result.lines == [prefix + body for prefix, body in zip(prefixes, HEX, strict=True)]


@pytest.mark.parametrize("framing", ["none", "u24", "u32-inclusive"])
def test_decode_takes_what_encode_prints(weirpool: Weirpool, framing: str) -> None:
    encoded = weirpool("encode", "--framing", framing, LINES)
    decoded = weirpool("decode", "--framing", framing, "-", stdin=encoded.out)
    assert [frame["type"] for frame in decoded.objects] == ["CANCEL", "REQUEST_N"]
    assert weirpool("encode", "--framing", framing, "-", stdin=decoded.out).out == encoded.out


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ("{", "line 1 is not valid JSON"),
        ('{"type": "CANCEL", "stream_id": 1, "stream_id": 3}', "'stream_id' is there twice"),
        ("[1]", "line 1: not a JSON object"),
        (f'{CANCEL}\n{{"type": "CANSEL"}}', "line 2: type is 'CANSEL'"),
        ('{"type": "CANCEL", "request_n": 1}', "request_n"),
        ("neither", "neither JSON nor a readable file"),
    ],
)
def test_wrong_use_is_exit_code_2(weirpool: Weirpool, given: str, part: str) -> None:
    result = weirpool("encode", given)
    assert result.code == 2
    assert part in result.err
    assert_one_line(result)


def test_standard_input_that_is_no_utf8(weirpool: Weirpool) -> None:
    result = weirpool("encode", "-", stdin=b"\xff")
    assert result.code == 2
    assert_one_line(result)


@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_messages_of_river_are_encoded_as_decode_prints_them(weirpool: Weirpool, codec: str) -> None:
    message = {"id": "m", "from": "c", "to": "s", "seq": 0, "ack": 0, "streamId": "x", "controlFlags": ["OPEN"]}
    options = ("--dialect", "river-2.0", "--framing", "u32", "--codec", codec)
    encoded = weirpool("encode", *options, json.dumps(message | {"payload": {"n": 1}}))
    (shown,) = weirpool("decode", *options, "-", stdin=encoded.out).objects
    assert shown.pop("length") and shown == message | {"payload": {"n": 1}}
    result = weirpool("encode", "--dialect", "river-2.0", "--codec", "xml", "{}")
    assert result.code == 2 and "unknown codec 'xml'" in result.err
