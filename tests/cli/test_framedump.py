from __future__ import annotations

import random
import re
from datetime import datetime

import pytest

from tests.cli.conftest import INTEROP, SEEN, Weirpool, serving
from weirpool import Kind, Metadata, Payload, Settings, Simple
from weirpool.cli.framedump import FrameDump
from weirpool.connection import Connection
from weirpool.protocols import client_session

FAMILY = ("rsocket", "reactivesocket-0.2", "reactivesocket-0.0")
NOON = datetime(2026, 1, 1, 12, 0, 0, 5_000)


def output(protocol: str, messages: bool = False, metadata: bytes | None = None) -> bytes:
    """Return the bytes of a client that calls, fires and closes."""
    session = client_session(protocol, Settings(), setup=Payload(b"geheim"), messages=messages)
    session.link_up(0)
    session.open(Kind.CALL, "" if metadata else "echo", Payload(b"one", metadata), 1)
    session.open(Kind.FIRE, "log", Payload(b"two"))
    return b"".join(session.take_output())


def dumped(
    protocol: str, pieces: list[bytes], *, client: bool = True, messages: bool = False, secrets: bool = False
) -> list[str]:
    lines: list[str] = []
    dump = FrameDump(lines.append, messages=messages, secrets=secrets, clock=lambda: NOON)
    connection = Connection(protocol, "here", client)
    dump.opened(connection)
    for piece in pieces:
        (dump.sent if client else dump.received)(connection, piece)
    dump.closed(connection, None)
    return lines


def cut(data: bytes, seed: int) -> list[bytes]:
    at = sorted(random.Random(seed).sample(range(1, len(data)), 12))
    return [data[start:end] for start, end in zip([0, *at], [*at, len(data)], strict=True)]


@pytest.mark.parametrize("messages", [False, True])
@pytest.mark.parametrize("protocol", FAMILY)
def test_frames_are_split_from_any_chunks(protocol: str, messages: bool) -> None:
    data = output(protocol, messages)
    whole = dumped(protocol, [data], messages=messages)
    assert [text.split()[2] for text in whole[1:-1]] == ["SETUP", "REQUEST_RESPONSE", "REQUEST_FNF"]
    assert whole[0] == "12:00:00.005 open here" and whole[-1] == "12:00:00.005 over closed by this side"
    assert 'data="two"(3)' in whole[3]
    assert "geheim" not in "".join(whole)
    assert dumped(protocol, [data[at : at + 1] for at in range(len(data))], messages=messages) == whole
    for seed in range(20):
        assert dumped(protocol, cut(data, seed), messages=messages) == whole


@pytest.mark.parametrize("messages", [False, True])
@pytest.mark.parametrize("protocol", FAMILY)
def test_server_detects_the_dialect_from_the_first_bytes(protocol: str, messages: bool) -> None:
    data = output(protocol, messages)
    pieces = [data[at : at + 1] for at in range(len(data))]
    lines = dumped("rsocket", pieces, client=False)
    assert [text.split()[3] for text in lines[1:-1]] == ["SETUP", "REQUEST_RESPONSE", "REQUEST_FNF"]
    assert lines[1].startswith("12:00:00.005 here rcvd SETUP")


def test_secrets_are_shown_when_asked_for() -> None:
    data = output("rsocket", metadata=Metadata("echo", auth=Simple("ada", "geheim")).encode())
    assert "geheim" not in "".join(dumped("rsocket", [data]))
    assert "".join(dumped("rsocket", [data], secrets=True)).count("geheim") == 2


def test_frames_after_the_end_and_over_another_link() -> None:
    lines: list[str] = []
    dump = FrameDump(lines.append, clock=lambda: NOON)
    connection = Connection("rsocket", "here", True)
    dump.opened(connection)
    data = output("rsocket")
    dump.sent(connection, data[:-1])
    # A part of a frame from the lost link is not the start of a frame on the next link.
    dump.resumed(connection)
    dump.sent(connection, data)
    dump.closed(connection, ValueError("bro\x1bken\n"))
    dump.sent(connection, data)
    assert [text.split()[2] for text in lines if " sent " in text].count("SETUP") == 3
    assert "12:00:00.005 over bro\\x1bken " in lines


def test_invalid_frame_is_reported_once() -> None:
    lines = dumped("rsocket", [b"\x00\x00\x06" + b"\xff" * 6, b"\x00\x00\x01\x00", b"more"])
    assert len(lines) == 4
    assert "invalid frame of 6 bytes" in lines[1] or "stream=" in lines[1]
    assert "nothing more can be shown" in lines[2]


def test_refused_links_are_shown() -> None:
    lines: list[str] = []
    FrameDump(lines.append, clock=lambda: NOON).refused("there", "too many")
    assert lines == ["12:00:00.005 there over too many"]


@pytest.mark.parametrize("url", ["rsocket+tcp", "rsocket+ws", "reactivesocket-0.0+tcp", "reactivesocket-0.0+ws"])
def test_both_sides_of_a_real_connection(weirpool: Weirpool, url: str) -> None:
    transport = url.partition("+")[2]
    with serving(f"{INTEROP}:service", f"rsocket+{transport}://127.0.0.1:0", options=["--debug"]) as (process, urls):
        result = weirpool("stream", urls[0].replace("rsocket", url.partition("+")[0], 1), "count", "-d", "2", "--debug")
        process.terminate()
        served = process.communicate()[1]
    assert result.lines == [b"0", b"1"]
    sent, rcvd = (re.findall(rf" {way} ([A-Z_]+)", result.err) for way in ("sent", "rcvd"))
    assert sent[:2] == ["SETUP", "REQUEST_STREAM"]
    assert re.findall(r" rcvd ([A-Z_]+)", served)[:2] == sent[:2]
    frames = [frame for frame in rcvd if frame not in ("LEASE", "KEEPALIVE")]
    assert frames and [frame for frame in re.findall(r" sent ([A-Z_]+)", served) if frame in frames] == frames


def test_credentials_stay_hidden_on_both_sides(weirpool: Weirpool) -> None:
    with serving(SEEN, "rsocket+tcp://127.0.0.1:0", options=["--debug"]) as (process, urls):
        options = ("--auth", "bearer:geheim", "--setup", "geheim", "--setup-auth", "simple:ada:geheim")
        result = weirpool("fire", urls[0], "log", *options, "--debug")
        process.terminate()
        served = process.communicate()[1]
    assert "authentication=hidden(" in result.err and "authentication=hidden(" in served
    assert "geheim" not in result.err + served


@pytest.mark.parametrize("url", ["river+tcp://127.0.0.1:0", "river+ws://127.0.0.1:0/?codec=msgpack"])
def test_messages_of_river_on_both_sides(weirpool: Weirpool, url: str) -> None:
    with serving(f"{INTEROP}:service", url, options=["--debug"]) as (process, urls):
        request = ("interop.count", "-d", '{"n":2}', "--setup", '{"token":"geheim"}', "--debug")
        result = weirpool("stream", urls[0], *request)
        process.terminate()
        served = process.communicate()[1]
    assert result.lines == [b'{"n":0}', b'{"n":1}']
    sent, rcvd = (re.findall(rf" {way} ([A-Z_]+)", result.err) for way in ("sent", "rcvd"))
    # The server starts with a heartbeat; its echo and the request may be sent in either order.
    assert rcvd == ["HANDSHAKE_RESP", "ACK", "DATA", "DATA", "CLOSE"]
    assert sent in (["HANDSHAKE_REQ", "ACK", "DATA"], ["HANDSHAKE_REQ", "DATA", "ACK"])
    assert 'procedure=interop.count payload={"n":2}(' in result.err
    assert re.findall(r" rcvd ([A-Z_]+)", served) == sent and re.findall(r" sent ([A-Z_]+)", served) == rcvd
    assert "geheim" not in result.err + served


def test_messages_of_reactive_streams(weirpool: Weirpool) -> None:
    with serving(f"{INTEROP}:service", "reactive-streams+tcp://127.0.0.1:0") as (_, urls):
        result = weirpool("stream", urls[0], "count", "-d", "2", "--debug")
    found = re.findall(r" (?:sent|rcvd) ([a-zA-Z]+)", result.err)
    assert {"clientHello", "serverHello", "subscribe"} <= set(found) and found.count("onNext") == 2


def test_messages_of_reactive_streams_are_lines() -> None:
    session = client_session("reactive-streams", Settings())
    session.link_up(0)
    session.open(Kind.STREAM, "ticks", Payload(b"q"), 7)
    data = b"".join(session.take_output())
    expected = [
        "12:00:00.005 open here",
        "12:00:00.005 sent clientHello version=0 extensions=[]",
        '12:00:00.005 sent subscribe publisher="ticks?cQ"(8) subscriber=1 demand=7',
        "12:00:00.005 over closed by this side",
    ]
    assert dumped("reactive-streams", [data]) == expected
    assert dumped("reactive-streams", [data[at : at + 1] for at in range(len(data))]) == expected
    served = dumped("reactive-streams", [data + b"\x0e", b"\x05\x01"], client=False)
    assert [text.split()[2] for text in served] == ["open", "rcvd", "rcvd", "rcvd", "over"]
    assert "message type 14 cannot be read" in served[3]
