from __future__ import annotations

import signal

import pytest

from tests.cli.conftest import INTEROP, SECONDS, Weirpool, assert_one_line, serving
from weirpool import IntervalLease, Settings
from weirpool.cli.serve import ServeOptions
from weirpool.errors import LocalError


def test_options_become_settings() -> None:
    options = ServeOptions(origin=["https://a.example", "*"], lease="100/0.5", resume=0, set=["max_streams=7"])
    assert options.settings() == Settings(
        origins=("https://a.example", "*"), lease=IntervalLease(100, 0.5), resume_timeout=0, max_streams=7
    )
    assert ServeOptions().settings() == Settings()


@pytest.mark.parametrize("text", ["", "100", "100/", "/1", "a/1", "100/-1", "0/1"])
def test_invalid_lease_is_an_error(text: str) -> None:
    with pytest.raises(LocalError, match="lease"):
        ServeOptions(lease=text).settings()


@pytest.mark.parametrize(
    ("urls", "options", "why"),
    [
        (
            ["rsocket+tcp://localhost:0"],
            ("--set", "heartbeat_interval=2"),
            "heartbeat_interval has no effect on a server of",
        ),
        (
            ["rsocket+tcp://localhost:0"],
            ("--origin", "https://a.example"),
            "origins has no effect on a server of rsocket+tcp",
        ),
        (["river+tcp://localhost:0"], ("--lease", "100/1"), "river has no leases; leave Settings.lease out"),
        (["reactive-streams+tcp://localhost:0"], ("--resume", "5"), "resume_timeout has no effect on a server of"),
        (
            ["river+tcp://localhost:0", "rsocket+tcp://localhost:0"],
            ("--set", "max_extensions=5"),
            "river+tcp, rsocket+tcp; leave",
        ),
    ],
)
def test_setting_without_effect_is_wrong_use(
    weirpool: Weirpool, urls: list[str], options: tuple[str, str], why: str
) -> None:
    result = weirpool("serve", f"{INTEROP}:service", *urls, *options)
    assert result.code == 2
    assert why in result.err
    assert_one_line(result)


def test_leases_are_granted_and_waited_for(weirpool: Weirpool) -> None:
    options = ("--lease", "2/0.2", "--stats")
    with serving(f"{INTEROP}:service", "rsocket+tcp://127.0.0.1:0", options=options) as (process, urls):
        result = weirpool("call", urls[0], "echo", "-d", "hi", "--lease", "--repeat", "5", "--debug")
        assert (result.code, result.lines) == (0, [b"hi"] * 5)
        assert result.err.count(" rcvd LEASE ") >= 3
        assert weirpool("call", urls[0], "echo", "-d", "hi").out == b"hi\n"
        process.send_signal(signal.SIGTERM)
        assert "6 requests; items: 0 received, 6 sent" in process.communicate(timeout=SECONDS)[1]


def test_server_without_resumption(weirpool: Weirpool) -> None:
    with serving(f"{INTEROP}:service", "rsocket+tcp://127.0.0.1:0", options=["--resume", "0"]) as (_, urls):
        result = weirpool("call", urls[0], "echo", "--resume", "60")
        assert result.code == 1
        assert "resume" in result.err


def test_origins(weirpool: Weirpool) -> None:
    options = ("--origin", "https://a.example")
    with serving(f"{INTEROP}:service", "rsocket+ws://127.0.0.1:0", options=options) as (_, urls):
        call = ("call", urls[0], "echo", "-d", "hi", "--header")
        assert weirpool(*call, "Origin: https://a.example").out == b"hi\n"
        assert weirpool(*call, "Origin: https://b.example").code == 3
