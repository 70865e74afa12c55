from __future__ import annotations

import logging

import pytest
from websockets.client import ClientProtocol
from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory
from websockets.http11 import Request, Response
from websockets.server import ServerProtocol
from websockets.typing import Origin, Subprotocol
from websockets.uri import parse_uri

from tests.sim.pair import CUTS, Cut
from weirpool import ConnectError, LocalError, ProtocolError, Settings
from weirpool.transports.websocket_handshake import HEAD_BYTES, ClientHandshake, ServerHandshake
from weirpool.urls import parse_url

URL = parse_url("rsocket+ws://localhost:7878/feed")


def client(settings: Settings | None = None, url: str = str(URL)) -> ClientHandshake:
    return ClientHandshake(parse_url(url), "localhost", settings or Settings())


def server(settings: Settings | None = None, url: str = str(URL)) -> ServerHandshake:
    return ServerHandshake(parse_url(url), settings or Settings())


def request_of(handshake: ClientHandshake) -> Request:
    """What the library reads of our request."""
    peer = ServerProtocol()
    peer.receive_data(handshake.request)
    [request] = peer.events_received()
    assert isinstance(request, Request)
    return request


def opening(uri: str = "ws://localhost:7878/feed", headers: dict[str, str] | None = None, **options: object) -> bytes:
    """A request by the library."""
    options.setdefault("subprotocols", [Subprotocol("rsocket")])
    request = ClientProtocol(parse_uri(uri), **options).connect()  # type: ignore[arg-type]
    for name, value in (headers or {}).items():
        request.headers[name] = value
    return request.serialize()


def answered(handshake: ServerHandshake, request: bytes) -> tuple[int, bytes]:
    """The status and all of an answer that refuses."""
    with pytest.raises(ProtocolError, match=r"opening (request|handshake)"):
        handshake.feed(request)
    return int(handshake.answer.split(b" ", 2)[1]), handshake.answer


# Both sides.


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_handshake_succeeds_and_keeps_the_rest(cut: Cut) -> None:
    here, there = client(), server()
    assert [there.feed(piece) for piece in cut(here.request)][-1] is True
    *waiting, done = [here.feed(piece) for piece in cut(there.answer)]
    assert (any(waiting), done) == (False, True)
    assert (here.take_rest(), there.take_rest()) == (b"", b"")
    here, there = client(), server()
    assert there.feed(here.request + b"first frames") and there.take_rest() == b"first frames"
    assert here.feed(there.answer + b"frames") and here.take_rest() == b"frames"
    assert (here.take_rest(), there.take_rest()) == (b"", b"")


# The client's.


def test_request_has_path_host_and_subprotocol() -> None:
    request = request_of(client())
    headers = request.headers
    assert (request.path, headers["Host"], headers["Sec-WebSocket-Protocol"]) == ("/feed", "localhost:7878", "rsocket")
    assert "Sec-WebSocket-Extensions" not in headers and "Origin" not in headers


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("rsocket+ws://h:1", "/"),
        ("rsocket+ws://h:1/a%20b/%C3%A9", "/a%20b/%C3%A9"),
        ("rsocket+ws://h:1/%0d%0aX:%20y", "/%0D%0AX:%20y"),
    ],
)
def test_a_path_cannot_be_more_than_a_path(url: str, path: str) -> None:
    assert request_of(client(url=url)).path == path


def test_headers_of_the_settings_are_sent_and_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    settings = Settings(headers=(("Authorization", "Bearer secret"), ("Cookie", "a=b"), ("Cookie", "c=d")))
    handshake = client(settings)
    headers = request_of(handshake).headers
    assert headers["Authorization"] == "Bearer secret"
    assert headers.get_all("Cookie") == ["a=b", "c=d"]
    caplog.clear()
    there = server()
    assert there.feed(handshake.request)
    assert handshake.feed(there.answer)
    assert "secret" not in repr(settings) + caplog.text


@pytest.mark.parametrize("name", ["Host", "upgrade", "Sec-WebSocket-Key", "Sec-WebSocket-Protocol"])
def test_headers_that_the_handshake_needs_are_its_own(name: str) -> None:
    with pytest.raises(LocalError, match=rf"Settings.headers has {name}, which is reserved for the WebSocket"):
        client(Settings(headers=((name, "x"),)))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("HTTP/1.1 401 Unauthorized", "the server answered 401 Unauthorized; pass credentials with Settings.headers"),
        ("HTTP/1.1 403 Forbidden", "answered 403 Forbidden; check the credentials"),
        ("HTTP/1.1 404 Not Found", "answered 404 Not Found; check the path"),
        ("HTTP/1.1 301 Moved", "answered 301 Moved; redirects are not followed"),
        ("HTTP/1.1 200 OK", "answered 200 OK; check that it uses WebSocket"),
        ("HTTP/1.0 503 Full", "answered 503 Full; the server is full"),
        ("HTTP/1.1 500 \x1b[31mred\x07", r"answered 500 \\x1b\[31mred\\x07;"),
        ("SSH-2.0-OpenSSH", "the answer is not HTTP; check that it uses WebSocket"),
        ("HTTP/1.1 x", "the answer is not HTTP"),
    ],
)
def test_refusal_shows_the_status_and_advice(line: str, message: str) -> None:
    with pytest.raises(ConnectError, match=message) as refused:
        client().feed(f"{line}\r\nContent-Length: 1000\r\n\r\n".encode())
    assert str(refused.value).startswith("cannot connect to ws://localhost:7878/feed: ")


def response(handshake: ClientHandshake, *, without: str = "", **headers: str) -> bytes:
    """The library's answer, changed."""
    peer = ServerProtocol(subprotocols=[Subprotocol("rsocket")])
    peer.receive_data(handshake.request)
    [request] = peer.events_received()
    assert isinstance(request, Request)
    answer: Response = peer.accept(request)
    if without:
        del answer.headers[without]
    for name, value in headers.items():
        header = name.replace("_", "-")
        if header in answer.headers:
            del answer.headers[header]
        answer.headers[header] = value
    return answer.serialize()


@pytest.mark.parametrize(
    ("without", "headers"),
    [
        ("", {"Sec_WebSocket_Accept": "x"}),
        ("Sec-WebSocket-Accept", {}),
        ("Upgrade", {}),
        ("", {"Sec_WebSocket_Protocol": "mqtt"}),
        ("", {"Sec_WebSocket_Extensions": "permessage-deflate"}),
    ],
    ids=["wrong key", "no key", "no upgrade", "another subprotocol", "deflate unasked"],
)
def test_a_wrong_answer_is_one_clear_error(without: str, headers: dict[str, str]) -> None:
    handshake = client()
    with pytest.raises(ConnectError, match="the server's opening handshake is invalid"):
        handshake.feed(response(handshake, without=without, **headers))


def test_a_server_need_not_choose_a_subprotocol() -> None:
    handshake = client()
    assert handshake.feed(response(handshake, without="Sec-WebSocket-Protocol"))


def test_an_endless_answer_is_not_held() -> None:
    with pytest.raises(ConnectError, match=f"longer than {HEAD_BYTES} bytes"):
        client().feed(b"HTTP/1.1 101 x\r\n" + b"A: b\r\n" * HEAD_BYTES)


# The server's.


def test_the_subprotocol_is_chosen_where_it_is_offered() -> None:
    there = server()
    assert there.feed(opening(subprotocols=[Subprotocol("mqtt"), Subprotocol("rsocket")]))
    assert b"\r\nSec-WebSocket-Protocol: rsocket\r\n" in there.answer
    there = server()
    assert there.feed(opening(subprotocols=None))
    assert b"Sec-WebSocket-Protocol" not in there.answer
    status, answer = answered(server(), opening(subprotocols=[Subprotocol("mqtt")]))
    assert status == 400 and b"supports only the subprotocol rsocket" in answer


def test_compression_is_declined() -> None:
    there = server()
    assert there.feed(opening(extensions=[ClientPerMessageDeflateFactory()]))
    assert b"Sec-WebSocket-Extensions" not in there.answer


@pytest.mark.parametrize(
    ("origins", "origin", "status"),
    [
        ((), None, 101),
        ((), "https://evil.example", 403),
        (("https://app.example",), "https://app.example", 101),
        (("https://app.example",), "https://app.example:8443", 403),
        (("https://app.example",), "http://app.example", 403),
        (("https://app.example",), "null", 403),
        (("*",), "https://evil.example", 101),
    ],
)
def test_pages_of_others_are_refused(origins: tuple[str, ...], origin: str | None, status: int) -> None:
    # THREATS 76
    there = server(Settings(origins=origins))
    request = opening(origin=None if origin is None else Origin(origin))
    if status == 101:
        assert there.feed(request)
    else:
        assert answered(there, request)[0] == status


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("127.0.0.1:7878", "http://127.0.0.1:7878", 101),
        ("localhost:7878", "http://localhost:7878", 101),
        ("[::1]:7878", "http://[::1]:7878", 101),
        ("127.0.0.1:7878", "http://127.0.0.1:80", 403),
        ("127.0.0.1:7878", "http://localhost:7878", 403),
        # DNS rebinding: the browser believes that this is the page's own server.
        ("evil.example:7878", "http://evil.example:7878", 403),
        ("localhost.evil.example:7878", "http://localhost.evil.example:7878", 403),
        ("127.0.0.1:7878", "http://[", 403),
    ],
)
def test_a_client_may_name_the_servers_own_address(host: str, origin: str, status: int) -> None:
    request = (
        f"GET /feed HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    there = server()
    if status == 101:
        assert there.feed(request.encode())
    else:
        assert answered(there, request.encode())[0] == status


@pytest.mark.parametrize("said", [b"", b"GET /feed HTTP/1.1\r\nHost: a\r\n"])
def test_closing_server_answers_incomplete_requests(said: bytes) -> None:
    there = server()
    assert not there.feed(said)
    answer = there.unavailable("The server is closing")
    assert answer.startswith(b"HTTP/1.1 503 Service Unavailable\r\n") and b"Connection: close\r\n" in answer


def test_one_good_origin_does_not_hide_another() -> None:
    request = opening(headers={"Origin": "https://app.example"}, origin=Origin("https://evil.example"))
    assert answered(server(Settings(origins=("https://app.example",))), request)[0] == 403


@pytest.mark.parametrize("path", ["", "/", "/feed/", "/other", "/feed/../other", "/FEED"])
def test_other_paths_are_not_found(path: str) -> None:
    assert answered(server(), opening(f"ws://localhost:7878{path}"))[0] == 404


def test_path_ignores_query_and_decodes_escapes() -> None:
    assert server().feed(opening("ws://localhost/fe%65d?x=y"))
    assert server(url="rsocket+ws://h:1").feed(opening("ws://h/"))


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /feed HTTP/1.1\r\nHost: h\r\n\r\n", 426),
        (opening().replace(b"GET", b"PUT"), 405),
        (opening().replace(b"HTTP/1.1", b"HTTP/1.0"), 505),
        (opening().replace(b"Version: 13", b"Version: 8"), 400),
        (opening().replace(b"Sec-WebSocket-Key", b"X"), 400),
        (b"POST /feed HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"\x00\x00\x28\r\n\r\n", 400),
        (b"GET /feed HTTP/1.1\r\nA: " + b"b" * HEAD_BYTES, 431),
    ],
    ids=["plain", "PUT", "HTTP/1.0", "old", "no key", "body", "HTTP/2", "no HTTP", "endless"],
)
def test_invalid_handshake_gets_an_error_status(request_: bytes, status: int) -> None:
    found, answer = answered(server(), request_)
    assert found == status
    assert answer.startswith(b"HTTP/1.1 ") and b"\r\nConnection: close\r\n" in answer
    assert (b"\r\nUpgrade: websocket\r\n" in answer) is (status == 426)


@pytest.mark.parametrize("said", [b"\0", b"\x16\x03\x01", b"GE\0", b"get / HTTP/1.1\r\n"])
def test_what_cannot_become_a_handshake_is_refused_at_once(said: bytes) -> None:
    """It would otherwise hold one of the links that its address may have, until the handshake's timeout."""
    handshake = server()
    with pytest.raises(ProtocolError, match="not a WebSocket handshake"):
        handshake.feed(said)
    assert handshake.answer.startswith(b"HTTP/1.1 400 ")
