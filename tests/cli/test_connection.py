from __future__ import annotations

import asyncio
import signal
import subprocess
from pathlib import Path

import pytest
import trustme

from tests.aio.fakes import FakeLink
from tests.cli.conftest import INTEROP, SECONDS, Weirpool, assert_one_line, command, serving
from weirpool import Peer, Settings, transports
from weirpool.aio.metrics import Metrics
from weirpool.aio.reconnect import Backoff
from weirpool.cli.connect_options import ConnectOptions
from weirpool.cli.connection import summary, with_peer
from weirpool.connection import Connection
from weirpool.errors import ConnectError
from weirpool.reactivestreams.handshake import hello, ours
from weirpool.transports import Receiver
from weirpool.urls import Url, parse_url
from weirpool.wire.reactivestreams.codec import encode


def test_trust(weirpool: Weirpool, tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    certificate = authority.issue_cert("127.0.0.1")
    certificate.private_key_and_cert_chain_pem.write_to_path(tmp_path / "server.pem")
    with serving(f"{INTEROP}:service", f"rsocket+tls://127.0.0.1:0?cert={tmp_path}/server.pem") as (_, urls):
        url = urls[0].partition("?")[0]
        call = ("call", url, "echo", "-d", "hi")
        assert weirpool(*call, "--cafile", str(tmp_path / "ca.pem")).out == b"hi\n"
        assert weirpool(*call, "--insecure").out == b"hi\n"
        collect = ("collect", url, "count", "-d", "3", "-q", "-j", str(tmp_path / "journal"))
        assert weirpool(*collect, "--cafile", str(tmp_path / "ca.pem")).code == 0
        refused = weirpool(*call)
    assert refused.code == 3
    assert "certificate" in refused.err
    assert_one_line(refused)


def test_retry_waits_for_a_late_server(tmp_path: Path) -> None:
    url = f"rsocket+unix://{tmp_path}/late.sock"
    arguments = command("call", url, "echo", "-d", "hi", "--retry", "1000", "--timeout", f"{SECONDS}")
    pipe = subprocess.PIPE
    with subprocess.Popen(arguments, stdout=pipe, stderr=pipe) as process:
        with serving(f"{INTEROP}:service", url):
            out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out, err) == (0, b"hi\n", b"")


@pytest.mark.parametrize("verb", ["call", "fire", "stream", "channel", "upload"])
def test_retry_gives_up_in_the_end(
    weirpool: Weirpool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    tries: list[Url] = []

    async def connect(url: Url, *_: object) -> None:
        tries.append(url)
        raise ConnectError("cannot connect to nobody")

    monkeypatch.setattr(transports, "connect", connect)
    monkeypatch.setattr(Backoff, "next", lambda self: 0.0)
    items = ("a line",) if verb in ("channel", "upload") else ()
    nobody = f"rsocket+unix://{tmp_path}/nobody"
    result = weirpool(verb, nobody, "echo", *items, "--retry", "2")
    assert (result.code, result.out, result.err) == (3, b"", "weirpool: cannot connect to nobody\n")
    assert tries == [parse_url(nobody)] * 3


def test_interrupt_is_exit_code_130_and_quiet(server: str) -> None:
    arguments = command("channel", server, "double", "-")
    pipe = subprocess.PIPE
    with subprocess.Popen(arguments, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.write(b"1\n")
        assert process.stdout.readline() == b"2\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 130
        assert process.stderr.read() == b""


def test_summary_shows_the_counters() -> None:
    metrics = Metrics()
    connection = Connection("rsocket", "", True)
    metrics.items_received(connection, 1_000)
    metrics.items_sent(connection, 2)
    metrics.received(connection, b"12345")
    expected = "0 requests; items: 1,000 received, 2 sent; bytes: 5 received, 0 sent; 2.000 s, 501 items/s"
    assert summary(metrics.snapshot(), 2.0) == expected


def test_stats_are_printed_after_success_and_failure(weirpool: Weirpool, server: str) -> None:
    result = weirpool("stream", server, "count", "-d", "3", "--stats")
    assert result.lines == [b"0", b"1", b"2"]
    assert result.err.startswith("1 requests; items: 3 received, 0 sent; bytes: ")
    failed = weirpool("call", server, "fail", "--stats")
    assert failed.code == 1
    stats, error = failed.err.splitlines()
    assert stats.startswith("1 requests; items: 0 received") and error == "weirpool: [0x301] boom"


def test_request_has_metadata_over_reactive_streams(weirpool: Weirpool) -> None:
    offered = ["--set", "extensions=metadata"]
    with serving(f"{INTEROP}:service", "reactive-streams+tcp://127.0.0.1:0", options=offered) as (_, urls):
        result = weirpool("call", urls[0], "echo", "-d", "hi", "-m", "meta", "--json", *offered)
    assert (result.code, result.err) == (0, "")
    assert result.objects == [{"metadata": "meta", "data": "hi"}]


@pytest.mark.parametrize("extensions", [("metadata",), ()])
def test_connection_is_used_after_the_hello_only_if_it_has_extensions(
    monkeypatch: pytest.MonkeyPatch, extensions: tuple[str, ...]
) -> None:
    began = []

    class SlowServer(FakeLink):
        """Its hello arrives late."""

        def hello(self, turns: int) -> None:
            if turns:
                asyncio.get_running_loop().call_soon(self.hello, turns - 1)
            else:
                began.append("hello")
                self.receiver.received(encode(hello(False, ours(Settings(extensions=extensions)))))

        def close(self) -> None:
            asyncio.get_running_loop().call_soon(self.receiver.link_lost, None)

        abort = close

    async def connect(url: Url, receiver: Receiver, settings: Settings, ssl: object) -> None:
        link = SlowServer(receiver)
        receiver.link_made(link)
        link.hello(turns=100)

    async def use(peer: Peer) -> None:
        began.append("use")
        await peer.close(0)

    monkeypatch.setattr(transports, "connect", connect)
    options = ConnectOptions(set=[f"extensions={','.join(extensions)}"])
    with_peer("reactive-streams+tcp://127.0.0.1:1", use, options)
    assert began[0] == ("hello" if extensions else "use")
