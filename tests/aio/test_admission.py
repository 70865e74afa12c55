from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trustme

import weirpool
from tests.aio.fakes import FakeSession, fake_connection
from tests.builds import Build
from tests.waiting import turns, until
from weirpool import Kind, Payload, Service, Settings, Setup, SetupRejected
from weirpool.aio.setup import Acceptor
from weirpool.protocols import client_session

PLACE = "rsocket+tcp://127.0.0.1:0"


def service(name: bytes = b"all") -> Service:
    made = Service()

    @made.call("who")
    def who(request: Payload) -> bytes:
        return name

    return made


@asynccontextmanager
async def serving(acceptor: Acceptor | None, **settings: object) -> AsyncIterator[str]:
    async with weirpool.serve(service(), PLACE, acceptor=acceptor, settings=Settings(**settings)) as server:  # type: ignore[arg-type]
        yield server.urls[0]


def check(setup: Setup) -> None:
    if setup.payload.data != b"open sesame":
        raise SetupRejected("wrong password")


async def check_later(setup: Setup) -> None:
    await asyncio.sleep(0.02)
    check(setup)


ACCEPTORS = pytest.mark.parametrize("acceptor", [check, check_later])


@ACCEPTORS
async def test_rejected_client_gets_the_reason_and_others_are_served(acceptor: Acceptor) -> None:
    async with serving(acceptor) as url:
        async with weirpool.connect(url, setup="open sesame") as peer:
            assert (await peer.call("who")).data == b"all"
        with pytest.raises(SetupRejected, match="wrong password") as refused:
            async with weirpool.connect(url, setup="guess") as peer:
                await peer.call("who")
        assert refused.value.code == 0x003


def number(setup: Setup) -> int:
    return 5


async def number_later(setup: Setup) -> int:
    await asyncio.sleep(0)
    return 5


@pytest.mark.parametrize("acceptor", [number, number_later])
async def test_acceptor_that_returns_something_else_rejects_the_client(
    acceptor: Any, caplog: pytest.LogCaptureFixture
) -> None:
    # TP9: the client waited until KeepaliveTimeout.
    async with serving(acceptor) as url:
        with pytest.raises(SetupRejected, match="the server rejected the set-up"):
            async with weirpool.connect(url) as peer:
                await peer.call("who")
    [record] = [record for record in caplog.records if record.message == "the acceptor failed"]
    assert record.exc_info is not None and "the acceptor returned 5; return a Service" in str(record.exc_info[1])


@ACCEPTORS
async def test_confirm_raises_a_rejection_at_once(acceptor: Acceptor) -> None:
    async with serving(acceptor) as url:
        with pytest.raises(SetupRejected, match="wrong password"):
            await weirpool.connect(url, setup="guess", confirm=True)
        peer = await weirpool.connect(url, setup="open sesame", confirm=True)
        assert (await peer.call("who")).data == b"all"
        await peer.close()


async def test_nothing_is_served_until_the_set_up_is_accepted() -> None:
    asked = asyncio.Event()
    accepted = asyncio.Event()

    async def wait(setup: Setup) -> None:
        asked.set()
        await accepted.wait()

    async with serving(wait) as url, weirpool.connect(url) as peer:
        calls = [asyncio.ensure_future(peer.call("who")) for _ in range(3)]
        await asked.wait()
        done, _ = await asyncio.wait(calls, timeout=0.05)
        assert done == set()
        accepted.set()
        assert [(await call).data for call in calls] == [b"all"] * 3


async def test_client_that_disconnects_early_is_removed() -> None:
    asked = asyncio.Event()
    canceled = asyncio.Event()

    async def wait(setup: Setup) -> None:
        asked.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            canceled.set()
            raise

    async with weirpool.serve(service(), "rsocket+memory://leaves", acceptor=wait) as server:
        peer = await weirpool.connect(server.urls[0])
        await asked.wait()
        await peer.close(0)
        await canceled.wait()
        await until(lambda: server.connections == 0)


async def test_an_acceptor_may_choose_the_service() -> None:
    admins = service(b"admins")

    def choose(setup: Setup) -> Service | None:
        return admins if setup.payload.data == b"root" else None

    async with serving(choose) as url:
        for setup, name in ((b"root", b"admins"), (b"me", b"all")):
            async with weirpool.connect(url, setup=setup) as peer:
                assert (await peer.call("who")).data == name


async def test_acceptor_gets_the_set_up() -> None:
    seen: list[Setup] = []
    async with serving(seen.append) as url:  # type: ignore[arg-type]
        settings = Settings(data_mime="application/json")
        async with weirpool.connect(url, setup=Payload(b"data", b"metadata"), settings=settings) as peer:
            await peer.call("who")
    (setup,) = seen
    assert (setup.payload, setup.data_mime) == (Payload(b"data", b"metadata"), "application/json")
    assert (setup.address, setup.certificate, setup.strict, setup.understood) == ("127.0.0.1", None, False, True)


async def test_acceptor_gets_the_client_certificate() -> None:
    ca = trustme.CA()
    server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    ca.issue_cert("127.0.0.1").configure_cert(server_side)
    ca.configure_trust(server_side)
    server_side.verify_mode = ssl.CERT_REQUIRED
    client_side = ssl.create_default_context()
    ca.configure_trust(client_side)
    certificate = ca.issue_cert("client@example.org")
    certificate.configure_cert(client_side)
    seen: list[Setup] = []
    place = PLACE.replace("tcp", "tls")
    async with weirpool.serve(service(), place, acceptor=seen.append, ssl=server_side) as server:  # type: ignore[arg-type]
        async with weirpool.connect(server.urls[0], ssl=client_side) as peer:
            await peer.call("who")
    shown = certificate.cert_chain_pems[0].bytes().decode()
    assert seen[0].certificate == ssl.PEM_cert_to_DER_cert(shown)


async def test_error_of_the_acceptor_is_not_sent_to_the_client(caplog: pytest.LogCaptureFixture) -> None:
    def broken(setup: Setup) -> None:
        raise KeyError("the database password")

    async with serving(broken) as url:
        with caplog.at_level(logging.ERROR, "weirpool.aio"), pytest.raises(SetupRejected) as refused:
            await weirpool.connect(url, confirm=True)
    assert "password" not in str(refused.value)
    assert "the acceptor failed" in caplog.text


@pytest.mark.parametrize("later", [False, True])
async def test_result_that_is_no_service_rejects_the_client(later: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def eventually(setup: Setup) -> int:
        return 5

    async with serving(eventually if later else lambda setup: 5) as url:  # type: ignore[arg-type,return-value]
        with caplog.at_level(logging.ERROR, "weirpool.aio"), pytest.raises(SetupRejected, match="rejected the set-up"):
            await weirpool.connect(url, confirm=True)
    assert "the acceptor returned 5; return a Service, an Admitted, or None" in caplog.text


@pytest.mark.parametrize("later", [False, True])
async def test_text_of_other_errors_for_peers_reaches_the_client(later: bool) -> None:
    def refuse(setup: Setup) -> None:
        raise weirpool.Rejected(message="not you")

    async def refuse_later(setup: Setup) -> None:
        refuse(setup)

    async with serving(refuse_later if later else refuse) as url:
        with pytest.raises(SetupRejected, match="not you") as refused:
            await weirpool.connect(url, confirm=True)
    assert refused.value.code == 0x003


async def test_strict_client_is_rejected_for_unsupported_mime_type() -> None:
    # ReactiveSocket 0.2, Connection Establishment: the S flag.
    async with serving(None) as url:
        old = url.replace("rsocket", "reactivesocket-0.2", 1)
        for settings in (Settings(data_mime="x/y"), Settings(strict=True, data_mime="application/json")):
            await (await weirpool.connect(old, confirm=True, settings=settings)).close()
        for name in ("data_mime", "metadata_mime"):
            settings = Settings(strict=True, **{name: "x/y"})
            with pytest.raises(SetupRejected, match="'x/y'") as refused:
                await weirpool.connect(old, confirm=True, settings=settings)
            # UNSUPPORTED_SETUP.
            assert refused.value.code == 0x002


async def test_confirm_times_out_without_an_answer() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    listening = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    async with listening:
        with pytest.raises(weirpool.ConnectError, match=r"not accept the set-up within 0\.1 s"):
            await weirpool.connect(
                f"rsocket+tcp://127.0.0.1:{port}", confirm=True, settings=Settings(connect_timeout=0.1)
            )


async def test_rs0_confirms_only_with_a_lease() -> None:
    async with serving(None, lease=True) as url:
        old = url.replace("rsocket", "reactivesocket-0.0")
        with pytest.raises(weirpool.UnsupportedKind, match=r"without leases; set Settings\.lease"):
            await weirpool.connect(old, confirm=True)
        async with weirpool.connect(old, confirm=True, settings=Settings(lease=True)) as peer:
            assert (await peer.call("who")).data == b"all"


async def accept_later(setup: Setup) -> None:
    await asyncio.sleep(0)


@pytest.mark.parametrize("acceptor", [None, accept_later])
async def test_fired_items_arrive_when_client_closes_in_the_same_read(acceptor: Acceptor | None) -> None:
    async with weirpool.serve(logging_service(seen := []), PLACE, acceptor=acceptor) as server:
        await tell(server, hello())
        await until(lambda: seen == [b"hello"])
        await until(lambda: not server.connections)


async def test_client_rejected_after_it_closed_is_removed() -> None:
    async with weirpool.serve(logging_service(seen := []), PLACE, acceptor=check_later) as server:
        await tell(server, hello())
        await until(lambda: server.connections == 1)
        await until(lambda: not server.connections)
    assert seen == []


async def test_closing_server_waits_for_acceptor_up_to_its_grace() -> None:
    canceled = asyncio.Event()

    async def wait(setup: Setup) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            canceled.set()
            raise

    async with weirpool.serve(logging_service(seen := []), PLACE, acceptor=wait) as server:
        await tell(server, hello())
        await until(lambda: server.connections == 1)
        await server.close(0)
        await canceled.wait()
        assert server.connections == 0
    assert seen == []


@pytest.mark.parametrize("how", ["closed by the peer", "closed by us"])
async def test_open_streams_end_while_acceptor_checks_new_set_up(build: Build, how: str) -> None:
    # THREATS 96
    module = build.module
    events, errors, payload = module("weirpool.events"), module("weirpool.errors"), module("weirpool.payload").Payload
    session = FakeSession(build)
    settings, service = module("weirpool.settings").Settings(), module("weirpool.aio.service").Service()
    driver = module("weirpool.aio.driver").Driver(session, settings, service, fake_connection(build))

    async def wait(setup: object) -> None:
        await asyncio.get_running_loop().create_future()

    exchanges = driver.exchanges
    inbound = exchanges.inbound[1] = module("weirpool.aio.inbound").ReceiveBuffer(exchanges, 1, 5, 5, True)
    call = exchanges.calls[3] = exchanges.new_reply()
    gates = module("weirpool.aio.admission")
    driver.sink = driver.admission = gate = gates.Admission(driver, wait, None, set())
    kind = module("weirpool.kinds").Kind.CALL
    session.events = [events.Established(payload(b"again"), "", ""), events.ItemReceived(3, payload(b"x"), True)]
    driver.flush()
    assert gate.state == gates.ASKING and not call.done()
    await turns(1)
    lost = errors.LinkLost("away")
    ends = [events.Failed(1, lost), events.Closed(lost)]
    if how == "closed by us":
        session.events = [events.Requested(5, kind, "r", payload(), 1, True)]
        driver.flush()
        gate.abandon()
    session.events = ends
    driver.flush()
    assert call.result() == payload(b"x")
    assert (inbound.over, inbound.error, driver.closed) == (True, lost, True)
    # The client is not admitted, so its request does not start.
    assert session.verbs("send", "fail", "close") == []
    await driver.over


def logging_service(seen: list[bytes]) -> Service:
    made = Service()

    @made.fire("log")
    def log(request: Payload) -> None:
        seen.append(request.data)

    return made


def hello() -> bytes:
    """Return all bytes of a client that fires one item and closes."""
    client = client_session("rsocket", Settings())
    client.link_up(0)
    client.open(Kind.FIRE, "log", Payload(b"hello"))
    client.close(0)
    return b"".join(client.take_output())


async def tell(server: weirpool.Server, data: bytes) -> None:
    """Send `data` in one piece over a new connection, and close it."""
    host, port = server.urls[0].rpartition("//")[2].split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    writer.write(data)
    writer.close()
    await writer.wait_closed()
