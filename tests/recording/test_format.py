from __future__ import annotations

from pathlib import Path

import pytest

from weirpool.errors import LocalError
from weirpool.payload import Payload
from weirpool.recording.format import Event, Head, decode_event, encode, events, open_recording, payload_fields

HEAD = encode(Head(1, "rsocket+tcp://localhost:1", "now"))


@pytest.mark.parametrize(
    "payload",
    [Payload(), Payload(b"text", b""), Payload(b"\xff\x00", b"\xfe"), Payload("é\n", None), Payload(b"", b"m")],
)
def test_any_payload_survives(payload: Payload) -> None:
    event = Event(1.5, 2, "item", **payload_fields(payload))
    line = encode(event)
    assert line.count(b"\n") == 1
    assert decode_event(line, "line").payload == payload


def written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "recording.jsonl"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("cut", range(1, 20))
def test_last_line_that_was_cut_is_ignored(tmp_path: Path, cut: int) -> None:
    line = encode(Event(0.1, 1, "item", data="x"))
    file, head = open_recording(written(tmp_path, HEAD + line + line[:-cut]))
    with file:
        assert [event.data for _, event in events(file, "it")] == ["x"]
    assert head.url == "rsocket+tcp://localhost:1"


@pytest.mark.parametrize(
    "line",
    [b"{}\n", b"x\n", b'{"t":1,"stream":1,"event":"dance"}\n', b'{"t":1,"stream":1,"event":"item","data_hex":"x"}\n'],
)
def test_damaged_line_is_an_error_with_its_place(tmp_path: Path, line: bytes) -> None:
    file, _ = open_recording(written(tmp_path, HEAD + line))
    with file, pytest.raises(LocalError, match=f"it, byte {len(HEAD)} is damaged"):
        list(events(file, "it"))


@pytest.mark.parametrize("content", [b"", b"\n", b"{}\n", b'{"weirpool_recording":2}\n', bytes(100)])
def test_other_file_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(LocalError, match="not a recording"):
        open_recording(written(tmp_path, content))


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="cannot read"):
        open_recording(tmp_path / "missing")


# THREATS 110
@pytest.mark.parametrize(
    "fields",
    [
        b'"more":' + b"[" * 100_000,
        b'"more":' + b"[" * 5_000 + b"]" * 5_000,
        b'"t":-1',
        b'"t":1e300',
        b'"t":1e999',
        b'"n":-1',
        b'"n":1e30',
        b'"n":18446744073709551615',
        b'"stream":0',
        b'"code":-1',
        b'"code":4294967296',
        b'"kind":5',
        b'"data":5',
    ],
)
def test_hostile_lines_are_errors_with_their_place(tmp_path: Path, fields: bytes) -> None:
    line = b'{"t":1,"stream":1,"event":"item",' + fields + b"}\n"
    file, _ = open_recording(written(tmp_path, HEAD + line))
    with file, pytest.raises(LocalError, match=f"it, byte {len(HEAD)} is damaged"):
        list(events(file, "it"))
    with pytest.raises(LocalError, match="not a recording"):
        open_recording(written(tmp_path, line))
