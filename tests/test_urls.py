from __future__ import annotations

import pytest

from weirpool import UrlError
from weirpool.urls import TRANSPORTS, Url, parse_url


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("rsocket+tcp://127.0.0.1:7878", Url("rsocket", "tcp", "127.0.0.1", 7878)),
        ("RSocket+TCP://Example.org:1", Url("rsocket", "tcp", "example.org", 1)),
        ("rsocket+tcp://[::1]:7878", Url("rsocket", "tcp", "::1", 7878)),
        ("rsocket+tcp://:0", Url("rsocket", "tcp", "", 0)),
        ("rsocket+tls://h:1?ca=a%20b.pem", Url("rsocket", "tls", "h", 1, options={"ca": "a b.pem"})),
        ("rsocket+unix:///tmp/a%20b.sock", Url("rsocket", "unix", path="/tmp/a b.sock")),
        ("rsocket+unix://here.sock", Url("rsocket", "unix", path="here.sock")),
        ("rsocket+ws://h:80", Url("rsocket", "ws", "h", 80)),
        ("rsocket+wss://h:443/a%20b?ca=x", Url("rsocket", "wss", "h", 443, "/a b", {"ca": "x"})),
        ("rsocket+h2c://h:1/a/b", Url("rsocket", "h2c", "h", 1, "/a/b")),
        ("rsocket+h2://h:1/a?ca=x", Url("rsocket", "h2", "h", 1, "/a", {"ca": "x"})),
        ("rsocket+quic://h:1?ca=x", Url("rsocket", "quic", "h", 1, options={"ca": "x"})),
        ("rsocket+memory://name", Url("rsocket", "memory", path="name")),
    ],
)
def test_url_is_parsed_and_formatted(text: str, url: Url) -> None:
    assert parse_url(text) == url
    assert parse_url(str(url)) == url


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a valid URL; write one like rsocket"),
        ("127.0.0.1:7878", "is not a valid URL"),
        ("rsocket://h:1", "has no transport"),
        ("rsockt+tcp://h:1", "unknown protocol 'rsockt'; did you mean 'rsocket'"),
        ("rsocket+tpc://h:1", "unknown transport 'tpc'; did you mean 'tcp'"),
        ("rsocket+carrier-pigeon://h:1", f"known are {', '.join(TRANSPORTS)}"),
        ("rsocket+tcp://h", "the port is missing"),
        ("rsocket+tcp://[::1]", "the port is missing"),
        ("rsocket+tcp://h:65536", "is not a number from 0 to 65535"),
        ("rsocket+tcp://h:x", "port 'x'"),
        ("rsocket+tcp://h:-1", "port '-1'"),
        ("rsocket+tcp://user:secret@h:1", "users, passwords and fragments"),
        ("rsocket+tcp://h:1#x", "fragments are not supported"),
        ("rsocket+tcp://[::1:1", "write one like"),
        ("rsocket+tls://h:1?ca", "write one like"),
        ("rsocket+unix://", "has no path"),
    ],
)
def test_invalid_url_raises_with_a_correction(text: str, message: str) -> None:
    with pytest.raises(UrlError, match=message) as refused:
        parse_url(text)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "rsocket+tcp://ada:hidden@h:1",
        "rsocket+tcp://ada:hidden/hidden@h:1",
        "rsocket+tcp://ada:hidden@hidden@h:1",
        "rsocket+tcp://ada:hidden?hidden@h:1",
        "rsocket+tcp://ada:hidden#hidden@h:1",
        "rsocket+tcp://ada:hidden\u2100@h:1",
        "rsocket+tcp://[hidden@h:1",
        "rsocket+ws://ada:hidden@h",
        "rsocket+unix://ada:hidden@/",
        "rsocket://ada:hidden@h:1",
        "rsockt+tcp://ada:hidden@h:1",
        "rsocket+tpc://ada:hidden@h:1",
        "ada:hidden@h:1",
    ],
)
def test_no_error_shows_a_password(text: str) -> None:
    # THREATS 100
    with pytest.raises(UrlError) as refused:
        parse_url(text)
    assert "hidden" not in str(refused.value)
    assert "…@" in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "rsocket+tcp://h?token=hidden",
        "rsocket+tcp://h:x?a=1&token=hidden",
        "rsocket://h:1?token=hidden",
        "rsockt+tcp://h:1?token=hidden",
        "h:1?token=hidden",
        "rsocket+tcp://[h:1?token=hidden",
        "rsocket+tcp://h:1?token=hidden&&",
        "rsocket+tcp://h:1?token=hidden#x",
    ],
)
def test_no_error_shows_the_value_of_an_option(text: str) -> None:
    with pytest.raises(UrlError) as refused:
        parse_url(text)
    assert "hidden" not in str(refused.value)


def test_place_omits_protocol_and_options() -> None:
    assert parse_url("rsocket+tls://[::1]:7878?ca=x").place == "tls://[::1]:7878"
    assert parse_url("rsocket+tcp://h:0").with_port(7878).place == "tcp://h:7878"


def test_options_belong_to_a_protocol_or_a_transport() -> None:
    assert "codec" in parse_url("river+tcp://h:1?codec=msgpack").protocol_options
    assert not parse_url("rsocket+tcp://h:1").protocol_options


def test_abstract_socket_has_a_name_after_a_null_character() -> None:
    url = parse_url("rsocket+unix://%00abstract/x")
    assert url.path == "\0abstract/x"
    assert str(url) == "rsocket+unix://%00abstract/x"


@pytest.mark.parametrize("place", ["unix://%00", "unix:///a%00b", "unix://%00a%00", "memory://%00a"])
def test_other_null_characters_are_refused(place: str) -> None:
    with pytest.raises(UrlError, match="the path has a null character; only an abstract socket begins with one"):
        parse_url(f"rsocket+{place}")


@pytest.mark.parametrize("text", ["rs+tcp://a:1", "rs/0+tcp://a:1"])
def test_abbreviated_protocol_is_suggested(text: str) -> None:
    with pytest.raises(UrlError, match="did you mean 'reactive-streams'"):
        parse_url(text)
