from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.cli.conftest import SECONDS, Weirpool, assert_one_line, command
from weirpool.cli.lines import lines_of, paced, payload_of
from weirpool.errors import LocalError
from weirpool.payload import Payload


def test_argument_and_file(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"a\r\n\nb")
    assert lines_of("a\n\nb") == lines_of(f"@{file}") == [b"a", b"", b"b"]


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="missing"):
        lines_of(f"@{tmp_path}/missing")


def test_lines_of_open_standard_input_are_sent_as_they_arrive(server: str) -> None:
    arguments = command("channel", server, "double", "-")
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin is not None and process.stdout is not None
        for number in range(3):
            process.stdin.write(b"%d\n" % number)
            assert process.stdout.readline() == b"%d\n" % (2 * number)
        # The last line needs no line break.
        process.stdin.write(b"21")
        process.stdin.close()
        assert process.stdout.readline() == b"42\n"
        assert process.wait(SECONDS) == 0


def test_open_standard_input_does_not_delay_the_end(server: str) -> None:
    arguments = command("channel", server, "double", "-", "--take", "1")
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"1\n")
        assert process.stdout.readline() == b"2\n"
        assert process.wait(SECONDS) == 0


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"data": "a"}', Payload(b"a")),
        (b'{"data": "", "metadata": ""}', Payload(b"", b"")),
        (b'{"data": null, "data_hex": "ff", "metadata": null, "metadata_hex": "fe"}', Payload(b"\xff", b"\xfe")),
        (b"{}", Payload()),
    ],
)
def test_item_is_read_as_printed_by_json(line: bytes, expected: Payload) -> None:
    assert payload_of(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"no JSON",
        b"[1]",
        b'{"data": "a", "data": "b"}',
        b'{"data": 1}',
        b'{"data_hex": "f"}',
        b'{"metadata_hex": 1}',
    ],
)
def test_invalid_item_is_an_error(line: bytes) -> None:
    with pytest.raises(LocalError, match="an item"):
        payload_of(line)


def test_output_of_one_verb_is_input_of_another(weirpool: Weirpool, seen: str) -> None:
    given = b'{"data": "a", "metadata": "m"}\n{"data": null, "metadata": null, "data_hex": "ff"}\n'
    printed = weirpool("channel", seen, "items", "-", "--json-items", "--json", stdin=given)
    again = weirpool("channel", seen, "items", "-", "--json-items", "--json", "--delay", "0.01", stdin=printed.out)
    assert printed.objects[0] == {"data": "a", "metadata": "m"}
    assert again.out == printed.out and len(again.lines) == 2


@pytest.mark.parametrize("verb", ["upload", "channel"])
def test_broken_item_is_wrong_use(weirpool: Weirpool, server: str, verb: str) -> None:
    route = {"upload": "sum", "channel": "double"}[verb]
    result = weirpool(verb, server, route, "no JSON", "--json-items")
    assert result.code == 2
    assert "not valid JSON" in result.err
    assert_one_line(result)


async def letters() -> AsyncIterator[str]:
    for letter in "abc":
        yield letter


async def test_paced_waits_only_between_items(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    assert [letter async for letter in paced(letters(), 0.25)] == ["a", "b", "c"]
    assert waited == [0.25, 0.25]
    assert [number async for number in paced(range(3), 0)] == [0, 1, 2]
    assert waited == [0.25, 0.25]
