from __future__ import annotations

import socket
import threading

import pytest

from tests.cli.conftest import INTEROP, SECONDS, Weirpool, assert_one_line, serving
from weirpool.cli.connect_options import SessionOptions, check_composite
from weirpool.errors import LocalError
from weirpool.settings import Settings

URL = "rsocket+tcp://127.0.0.1:7878"


def test_options_become_settings() -> None:
    options = SessionOptions(data_mime="text/csv", metadata_mime="text/plain", lease=True, set=["credit=7"])
    assert options.settings(URL, resume=True) == Settings(
        data_mime="text/csv", metadata_mime="text/plain", lease=True, credit=7, resume=True
    )
    assert SessionOptions().settings(URL) == Settings()


def test_headers_need_a_transport_over_http() -> None:
    options = SessionOptions(header=["Authorization: Bearer a:b", "X-Empty:"])
    for transport in ("ws", "wss", "h2c", "h2"):
        settings = options.settings(f"rsocket+{transport}://here:1")
        assert settings.headers == (("Authorization", "Bearer a:b"), ("X-Empty", ""))
    with pytest.raises(LocalError, match="--header works only with h2, h2c, ws and wss"):
        options.settings(URL)
    with pytest.raises(LocalError, match="colon") as error:
        SessionOptions(header=["geheim"]).settings("rsocket+wss://here:1")
    assert "geheim" not in str(error.value)


@pytest.mark.parametrize(
    ("url", "mime", "composite"),
    [
        (URL, "", True),
        (URL, "text/plain", False),
        ("reactivesocket-0.2+tcp://a:1", "", False),
        ("reactivesocket-0.0+ws://a:1", "", False),
        ("river+tcp://a:1", "", False),
        ("reactive-streams+tcp://a:1", "", False),
        ("reactivesocket-0.2+tcp://a:1", "message/x.rsocket.composite-metadata.v0", True),
    ],
)
def test_composite_metadata_depends_on_protocol_and_mime(url: str, mime: str, composite: bool) -> None:
    if composite:
        check_composite(url, Settings(metadata_mime=mime), "--auth needs")
    else:
        with pytest.raises(LocalError, match="--auth needs composite metadata; use protocol rsocket, without"):
            check_composite(url, Settings(metadata_mime=mime), "--auth needs")


def test_mime_types_and_leases_arrive(weirpool: Weirpool, seen: str) -> None:
    (said,) = weirpool("call", seen, "setup", "--data-mime", "text/csv", "--lease").objects
    assert (said["data_mime"], said["metadata_mime"]) == ("text/csv", "message/x.rsocket.composite-metadata.v0")


def test_missing_lease_is_exit_code_1(weirpool: Weirpool, server: str) -> None:
    result = weirpool("call", server, "echo", "--lease")
    assert result.code == 1
    assert "leases" in result.err
    assert_one_line(result)


def test_headers_are_sent(weirpool: Weirpool) -> None:
    heads: list[bytes] = []

    def answer(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            heads.append(connection.recv(65_536))
            connection.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer, args=(listening,))
        thread.start()
        url = f"rsocket+ws://127.0.0.1:{listening.getsockname()[1]}/"
        result = weirpool("call", url, "echo", "--header", "Authorization: Bearer geheim", "--debug")
        thread.join(SECONDS)
    assert b"Authorization: Bearer geheim\r\n" in heads[0]
    assert result.code == 3
    assert "geheim" not in result.err


@pytest.mark.parametrize("transport", ["tcp", "ws", "h2c"])
@pytest.mark.parametrize("protocol", ["rsocket", "reactivesocket-0.2", "reactivesocket-0.0"])
def test_every_protocol(weirpool: Weirpool, protocol: str, transport: str) -> None:
    with serving(f"{INTEROP}:service", f"rsocket+{transport}://127.0.0.1:0/here") as (_, urls):
        url = urls[0].replace("rsocket+", f"{protocol}+", 1)
        call = weirpool("call", url, "echo", "-d", "hi")
        assert (call.code, call.out, call.err) == (0, b"hi\n", "")
        endless = weirpool("stream", url, "count", "-d", "9", "--take", "2", "--endless")
        assert (endless.code, endless.lines, endless.err) == (0, [b"0", b"1"], "")


def test_wrong_setting_is_wrong_use(weirpool: Weirpool, server: str) -> None:
    result = weirpool("call", server, "echo", "--set", "credit=0")
    assert result.code == 2
    assert_one_line(result)
