from __future__ import annotations

import io
import json
import sys

import pytest

from tests.cli.conftest import Weirpool, assert_one_line
from weirpool.cli.output import Printer
from weirpool.payload import Payload


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def printed(payload: Payload, format: str = "text", terminal: bool = False) -> bytes:
    """Return the output for one item."""
    raw = io.BytesIO()
    out = Terminal(raw) if terminal else io.TextIOWrapper(raw)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        Printer(format).item(payload)
    out.detach()
    return raw.getvalue()


def test_bytes_are_written_as_they_are() -> None:
    assert printed(Payload(b"\x1b[2J\xff")) == b"\x1b[2J\xff\n"


@pytest.mark.parametrize("data", [b"\x1b[2J", b"\r", b"\x7f", b"\xc2\x9b2J", b"\x00"])
def test_no_control_character_reaches_a_terminal(data: bytes) -> None:
    # THREATS 77
    out = printed(Payload(data), terminal=True)
    assert b"\\x" in out
    assert out.rstrip(b"\n").decode().isprintable()


def test_terminal_shows_text() -> None:
    assert printed(Payload("grün\t1\nzwei"), terminal=True) == "grün\t1\nzwei\n".encode()


def test_json_distinguishes_text_bytes_and_absence() -> None:
    assert json.loads(printed(Payload(b"a", None), "json")) == {"data": "a", "metadata": None}
    assert json.loads(printed(Payload(b"", b""), "json")) == {"data": "", "metadata": ""}
    assert json.loads(printed(Payload(b"\xff", b"\xfe"), "json")) == {
        "data": None,
        "data_hex": "ff",
        "metadata": None,
        "metadata_hex": "fe",
    }


def test_json_is_one_line_without_control_characters() -> None:
    text = "".join(map(chr, range(0x20))) + "\x7f\x9bgrün"
    out = printed(Payload(text), "json")
    assert json.loads(out)["data"] == text
    assert out[:-1].decode().isprintable()


def test_formats() -> None:
    payload = Payload(b"a\xff", b"metadata")
    assert printed(payload, "hex") == b"61ff\n"
    assert printed(payload, "raw") == b"a\xff"
    assert printed(payload, "none") == b""


def test_format_of_a_verb(weirpool: Weirpool, server: str) -> None:
    call = ("call", server, "echo", "-d", "hi")
    assert weirpool(*call, "--format", "hex").out == b"6869\n"
    assert weirpool(*call, "--format", "json").out == weirpool(*call, "--json").out
    result = weirpool(*call, "--format", "xml")
    assert result.code == 2
    assert "text, json, hex, raw, none" in result.err
    assert_one_line(result)


def test_json_shows_the_entries_of_composite_metadata(weirpool: Weirpool, server: str) -> None:
    item = weirpool("call", server, "echo", "--json", "--entry", "my/own=1").objects[0]
    assert item["entries"] == [
        {"mime": "message/x.rsocket.routing.v0", "tags": ["echo"]},
        {"mime": "my/own", "content": "1"},
    ]
    # What is not composite is not decoded.
    assert "entries" not in weirpool("call", server, "echo", "--json", "--metadata-mime", "text/plain").objects[0]
