from __future__ import annotations

import re
import socket
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.conftest import SECONDS, Weirpool, assert_one_line
from weirpool.cli.connect_options import ConnectOptions
from weirpool.settings import Settings


def test_resuming_is_a_setting() -> None:
    settings = ConnectOptions(resume=5).settings("rsocket+tcp://a:1")
    assert settings == Settings(resume=True, resume_timeout=5)


def test_set_up_contains_the_given_data(weirpool: Weirpool, seen: str, tmp_path: Path) -> None:
    file = tmp_path / "metadata"
    file.write_bytes(b"beside")
    options = ("--setup", "who I am", "--setup-metadata", f"@{file}", "--setup-auth", "simple:ada:lovelace")
    (said,) = weirpool("call", seen, "setup", *options).objects
    assert (said["data"], said["auth"]) == ("who I am", ["Simple", "ada", "lovelace"])
    assert said["entries"]["application/octet-stream"] == "beside"


def test_credentials_of_the_set_up_may_be_in_the_environment(
    weirpool: Weirpool, seen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIRPOOL_SETUP_AUTH", "bearer:abc")
    (said,) = weirpool("call", seen, "setup").objects
    assert said["auth"] == ["Bearer", "", "abc"]


def test_credentials_need_composite_metadata(weirpool: Weirpool, seen: str) -> None:
    result = weirpool("call", seen, "setup", "--setup-auth", "bearer:geheim", "--metadata-mime", "text/plain")
    assert result.code == 2
    assert "composite" in result.err and "geheim" not in result.err
    assert_one_line(result)


def test_resumable_session_works(weirpool: Weirpool, seen: str) -> None:
    result = weirpool("call", seen, "seen", "--resume", "60", "--debug")
    assert result.code == 0
    assert "token=hidden(16)" in result.err


def test_draft_cannot_resume(weirpool: Weirpool, seen: str) -> None:
    result = weirpool("call", seen.replace("rsocket+", "reactivesocket-0.0+"), "seen", "--resume", "60")
    assert result.code == 2
    assert_one_line(result)


@pytest.mark.parametrize(
    ("url", "options", "why"),
    [
        ("rsocket+tcp", ("--set", "max_extensions=5"), "no effect on a client of rsocket+tcp; leave it out"),
        ("rsocket+ws", ("--set", "heartbeat_interval=2"), "no effect on a client of rsocket+ws; leave it out"),
        ("river+ws", ("--set", "max_keepalive_bytes=5"), "no effect on a client of river+ws; leave it out"),
        ("river+ws", ("--set", "river_v1_1=true"), "no effect on a client of river+ws; leave it out"),
        ("river+ws", ("--data-mime", "a/b"), "Settings.data_mime has no effect on a client of river+ws; leave it out"),
        ("rsocket+tcp", ("--set", "extensions=metadata"), "rsocket has no extensions; leave Settings.extensions out"),
    ],
)
def test_setting_without_effect_is_wrong_use(
    weirpool: Weirpool, tmp_path: Path, url: str, options: tuple[str, str], why: str
) -> None:
    place = f"{url}://127.0.0.1:1"
    option, value = options
    name = option.removeprefix("--")
    file = tmp_path / "options.toml"
    file.write_text(f'{name} = ["{value}"]\n' if name == "set" else f'{name} = "{value}"\n')
    for given in (options, ("--options", str(file))):
        result = weirpool("call", place, "echo", "-d", "{}", *given)
        assert result.code == 2
        assert why in result.err
        assert_one_line(result)


def cutting(listening: socket.socket, place: tuple[str, int]) -> None:
    """Relay two connections to `place`. The first one breaks within the data from the server."""
    for most in (50_000, None):
        near, _ = listening.accept()
        with near, socket.create_connection(place) as far:
            there = threading.Thread(target=carry, args=(near, far, None))
            there.start()
            carry(far, near, most)
            for end in (near, far):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            there.join(SECONDS)


def carry(source: socket.socket, sink: socket.socket, most: int | None) -> None:
    carried = 0
    with suppress(OSError):
        while (most is None or carried < most) and (data := source.recv(8_192)):
            sink.sendall(data)
            carried += len(data)


def test_stream_resumes_after_a_broken_connection(weirpool: Weirpool, server: str) -> None:
    host, port = server.rpartition("//")[2].split(":")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=cutting, args=(listening, (host, int(port))), daemon=True)
        thread.start()
        url = f"rsocket+tcp://127.0.0.1:{listening.getsockname()[1]}"
        result = weirpool("stream", url, "count", "-d", "20000", "--resume", "60", "--debug")
        thread.join(SECONDS)
    assert (result.code, result.lines) == (0, [b"%d" % number for number in range(20_000)])
    # The frames of the second link are also shown, from its start.
    assert " open over another link" in result.err
    assert re.findall(r" sent (SETUP|RESUME)\b", result.err) == ["SETUP", "RESUME"]
    assert "no frame" not in result.err and 'data="19999"' in result.err
