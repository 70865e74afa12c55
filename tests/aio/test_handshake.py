from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

import weirpool
from tests.aio.serving import noted_drivers
from tests.waiting import until
from weirpool import (
    Admitted,
    Connection,
    LocalError,
    Payload,
    Service,
    SessionClosed,
    SessionError,
    Settings,
    Setup,
    SetupRejected,
    UnsupportedKind,
    current_connection,
    handshake,
    rehandshake,
)
from weirpool.aio.admission import Acceptor

RIVER = "river+ws://127.0.0.1:0/river"
GOOD = b'{"token":"good"}'


class Token(msgspec.Struct):
    token: str


SCHEMA = {"type": "object", "required": ["token"], "properties": {"token": {"type": "string"}}}
CODES = {"bad": None, "old": "REJECTED_UNSUPPORTED_CLIENT", "own": "SOMETHING_ELSE"}


def check(token: Any, setup: Setup) -> str:
    word = str(token["token"] if isinstance(token, dict) else token.token)
    if word == "throw":
        raise KeyError("a secret")
    if word in CODES:
        raise SetupRejected(f"{word} tokens are refused", CODES[word])
    return f"{setup.previous}, then {word}" if setup.previous else word


async def check_later(token: Any, setup: Setup) -> str:
    await asyncio.sleep(0)
    return check(token, setup)


def service() -> Service:
    made = Service()

    @made.call("who.am")
    def am(request: Payload) -> bytes:
        return msgspec.json.encode(current_connection().identity)

    @made.call("who.again")
    async def again(request: Payload) -> bytes:
        return msgspec.json.encode(await rehandshake(current_connection()))

    return made


@asynccontextmanager
async def serving(acceptor: Acceptor, url: str = RIVER, **settings: Any) -> AsyncIterator[str]:
    async with weirpool.serve(service(), url, acceptor=acceptor, settings=Settings(**settings)) as server:
        yield server.urls[0]


@pytest.mark.parametrize("schema", [Token, SCHEMA])
@pytest.mark.parametrize("validate", [check, check_later])
async def test_handlers_get_the_identity_from_the_validator(schema: Any, validate: Any) -> None:
    async with serving(handshake(schema, validate)) as url:
        for confirm in (True, False):
            async with weirpool.connect(url, setup=GOOD, confirm=confirm) as peer:
                assert (await peer.call("who.am")).data == b'"good"'


async def test_handlers_get_the_value_without_a_validator() -> None:
    async with serving(handshake(Token)) as url, weirpool.connect(url, setup=GOOD) as peer:
        assert (await peer.call("who.am")).data == GOOD


@pytest.mark.parametrize("schema", [Token, SCHEMA])
@pytest.mark.parametrize("validate", [check, check_later])
@pytest.mark.parametrize(
    ("said", "code", "text"),
    [
        (b"", "MALFORMED_HANDSHAKE_META", "schema"),
        (b"null", "MALFORMED_HANDSHAKE_META", "schema"),
        (b'{"token":5}', "MALFORMED_HANDSHAKE_META", "token"),
        (b'{"token":"bad"}', "REJECTED_BY_CUSTOM_HANDLER", "bad tokens"),
        (b'{"token":"old"}', "REJECTED_UNSUPPORTED_CLIENT", "old tokens"),
        (b'{"token":"own"}', "REJECTED_BY_CUSTOM_HANDLER", "own tokens"),
        (b'{"token":"throw"}', "REJECTED_BY_CUSTOM_HANDLER", "rejected the set-up"),
    ],
)
async def test_rejected_client_gets_the_code(schema: Any, validate: Any, said: bytes, code: str, text: str) -> None:
    async with serving(handshake(schema, validate)) as url:
        with pytest.raises(SetupRejected, match=text) as refused:
            await weirpool.connect(url, setup=said, confirm=True)
        assert refused.value.code == code and "secret" not in str(refused.value)


async def test_rejection_has_rsocket_codes() -> None:
    url = "rsocket+memory://handshakes"
    settings = Settings(data_mime="application/json")
    async with serving(handshake(Token, check), url):
        async with weirpool.connect(url, setup=GOOD, settings=settings, confirm=True) as peer:
            assert (await peer.call("who.am")).data == b'"good"'
            with pytest.raises(weirpool.ApplicationError):
                await peer.call("who.again")
        for said, code, options in (
            (b"{}", 0x001, settings),
            (b'{"token":"bad"}', 0x003, settings),
            (GOOD, 0x001, Settings(data_mime="text/plain")),
        ):
            with pytest.raises(SetupRejected) as refused:
                await weirpool.connect(url, setup=said, settings=options, confirm=True)
            assert refused.value.code == code


async def test_requests_wait_for_the_validator() -> None:
    asked, accepted = asyncio.Event(), asyncio.Event()
    seen: list[bytes] = []

    async def wait(token: Token, setup: Setup) -> str:
        asked.set()
        await accepted.wait()
        return token.token

    offered = service()

    @offered.call("who.seen")
    def note(request: Payload) -> None:
        seen.append(request.data)

    async with weirpool.serve(offered, RIVER, acceptor=handshake(Token, wait)) as server:
        async with weirpool.connect(server.urls[0], setup=GOOD, settings=Settings(handshake_timeout=30.0)) as peer:
            calls = [asyncio.ensure_future(peer.call("who.seen", b"%d" % number)) for number in range(3)]
            await asked.wait()
            assert seen == [] and not any(call.done() for call in calls)
            accepted.set()
            await asyncio.gather(*calls)
            assert seen == [b"0", b"1", b"2"]


async def test_validator_has_a_timeout() -> None:
    canceled = asyncio.Event()

    async def hang(token: Token, setup: Setup) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            canceled.set()

    # There is no other timeout.
    patient = Settings(acceptor_timeout=0.02, heartbeat_interval=600.0)
    async with weirpool.serve(service(), RIVER, acceptor=handshake(Token, hang), settings=patient) as server:
        settings = Settings(session_grace=0.1, handshake_timeout=600.0, heartbeat_interval=600.0)
        with pytest.raises(SessionError):
            await weirpool.connect(server.urls[0], setup=GOOD, confirm=True, settings=settings)
        await canceled.wait()
        await until(lambda: server.connections == 0)


async def test_metadata_has_a_limit_of_bytes_and_of_depth() -> None:
    async with serving(handshake({}), max_setup_frame_bytes=1_000, max_refusals_per_address=0) as url:
        for said in (b'"%s"' % (b"x" * 1_000), b"[" * 127 + b"]" * 127):
            with pytest.raises((SessionError, LocalError)):
                await weirpool.connect(url, setup=said, confirm=True, settings=Settings(session_grace=0.05))
        async with weirpool.connect(url, setup=b'"short"', confirm=True):
            pass


async def test_reconnecting_client_is_checked_again() -> None:
    welcome = True
    asked: list[object] = []

    async def fickle(token: Token, setup: Setup) -> str:
        asked.append(setup.previous)
        if not welcome:
            raise SetupRejected("the token has expired")
        return f"{token.token} {len(asked)}"

    async with serving(handshake(Token, fickle)) as url:
        with noted_drivers() as drivers:
            async with weirpool.connect(url, setup=GOOD) as peer:
                [driver] = drivers
                assert (await peer.call("who.am")).data == b'"good 1"'
                driver.link.abort()
                assert (await peer.call("who.am")).data == b'"good 2"'
                assert asked == [None, "good 1"]
                welcome = False
                driver.link.abort()
                with pytest.raises(weirpool.ApplicationError) as failed:
                    await peer.call("who.am")
                assert failed.value.code == "UNEXPECTED_DISCONNECT"
                assert isinstance(driver.error, SetupRejected)
                assert driver.error.code == "REJECTED_BY_CUSTOM_HANDLER"


@pytest.mark.parametrize("validate", [check, check_later])
async def test_rehandshake_checks_the_client_again(validate: Any) -> None:
    async with serving(handshake(Token, validate)) as url, weirpool.connect(url, setup=GOOD) as peer:
        calls = await asyncio.gather(peer.call("who.am"), peer.call("who.again"), peer.call("who.again"))
        assert [answer.data for answer in calls] == [b'"good"', b'"good, then good"', b'"good, then good"']
        assert (await peer.call("who.am")).data == b'"good, then good"'


async def test_client_rejected_by_rehandshake_loses_its_session() -> None:
    def once(token: Token, setup: Setup) -> str:
        if setup.previous:
            raise SetupRejected("the token has expired")
        return token.token

    async with serving(handshake(Token, once)) as url, weirpool.connect(url, setup=GOOD) as peer:
        with pytest.raises(weirpool.ApplicationError) as failed:
            await peer.call("who.again")
        assert failed.value.code == "UNEXPECTED_DISCONNECT"


async def test_rehandshake_needs_a_river_server() -> None:
    connections: list[Connection] = []

    @asynccontextmanager
    async def hook(connection: Connection) -> AsyncIterator[None]:
        connections.append(connection)
        yield

    async with serving(handshake(Token)) as url:
        async with weirpool.connect(url, setup=GOOD, on_connection=hook):
            with pytest.raises(UnsupportedKind):
                await rehandshake(connections[0])
    with pytest.raises(UnsupportedKind):
        await rehandshake(Connection("river", "", False))


async def test_rehandshake_of_an_ended_session_raises() -> None:
    connections: list[Connection] = []

    def remember(token: Token, setup: Setup) -> None:
        return None

    offered = service()

    @offered.call("who.note")
    def note(request: Payload) -> None:
        connections.append(current_connection())

    class Quiet(weirpool.Tap):
        """With a tap the session is another object."""

    settings = Settings(session_grace=0.01)
    acceptor = handshake(Token, remember)
    async with weirpool.serve(offered, RIVER, acceptor=acceptor, taps=[Quiet()], settings=settings) as server:
        async with weirpool.connect(server.urls[0], setup=GOOD) as peer:
            await peer.call("who.note")
            assert (await peer.call("who.again")).data == b"null"
        await until(lambda: connections[0].error is not None or server.connections == 0)
    with pytest.raises(SessionClosed):
        await rehandshake(connections[0])


async def test_setup_function_is_called_for_each_session() -> None:
    said = iter(range(1, 100))

    def token() -> bytes:
        return b'{"token":"%d"}' % next(said)

    def keep(token: Token, setup: Setup) -> str:
        return token.token

    async with serving(handshake(Token, keep)) as url:
        with noted_drivers() as drivers:
            async with weirpool.connect(url, setup=token) as peer:
                [driver] = drivers
                assert (await peer.call("who.am")).data == b'"1"'
                driver.link.abort()
                assert (await peer.call("who.am")).data == b'"2"'
                assert (await peer.call("who.again")).data == b'"3"'
                assert (await peer.call("who.am")).data == b'"3"'


@pytest.mark.parametrize("wrong", [KeyError("no token"), b"{", 5])
async def test_failing_setup_function_ends_the_session(wrong: Any) -> None:
    answers = [GOOD, wrong]

    def token() -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async with serving(handshake(Token)) as url:
        with noted_drivers() as drivers:
            async with weirpool.connect(url, setup=token) as peer:
                await peer.call("who.am")
                drivers[0].link.abort()
                with pytest.raises(weirpool.ApplicationError) as failed:
                    await peer.call("who.am")
                assert failed.value.code == "UNEXPECTED_DISCONNECT"
                assert isinstance(drivers[0].error, LocalError)


async def test_other_protocols_send_metadata_for_each_session() -> None:
    url, said = "rsocket+memory://tokens", iter(range(1, 100))
    settings = Settings(data_mime="application/json")
    async with serving(handshake(int), url):
        connecting = weirpool.connect(url, setup=lambda: str(next(said)), settings=settings)
        async with connecting as peer:
            assert (await peer.call("who.am")).data == b"1"
        async with weirpool.connect(url, setup=lambda: str(next(said)), settings=settings) as peer:
            assert (await peer.call("who.am")).data == b"2"


@pytest.mark.parametrize("later", [False, True])
async def test_validator_may_name_the_principal(later: bool) -> None:
    # THREATS 95
    principals = iter(["ann", "bob"])

    def name(token: Token, setup: Setup) -> Admitted:
        return Admitted(token.token, principal=next(principals))

    async def name_later(token: Token, setup: Setup) -> Admitted:
        return name(token, setup)

    made = Service()

    @made.call("who.counts")
    def counts(request: Payload) -> bytes:
        return msgspec.json.encode([current_connection().identity, current_connection().counted_as])

    @made.call("who.again")
    async def again(request: Payload) -> bytes:
        return msgspec.json.encode(await rehandshake(current_connection()))

    acceptor = handshake(Token, name_later if later else name)
    async with weirpool.serve(made, RIVER, acceptor=acceptor) as server:
        async with weirpool.connect(server.urls[0], setup=GOOD) as peer:
            assert (await peer.call("who.counts", b"null")).data == b'["good","principal ann"]'
            await peer.call("who.again", b"null")
            # The new principal counts instead of the old one.
            assert (await peer.call("who.counts", b"null")).data == b'["good","principal bob"]'
            assert set(server._limits._linked) == {"principal bob"}
