from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Weirpool, assert_one_line
from weirpool.cli.request_options import RequestOptions
from weirpool.payload import Payload
from weirpool.settings import Settings

URL = "rsocket+tcp://127.0.0.1:7878"


def test_plain_request_has_no_route_in_its_metadata() -> None:
    assert RequestOptions(data="data").request(URL, "route", Settings()) == ("route", Payload("data"))
    request = RequestOptions(data="data", metadata="").request(URL, "route", Settings())
    assert request == ("route", Payload("data", b""))


def test_everything_arrives(weirpool: Weirpool, seen: str) -> None:
    options = ("--auth", "simple:ada:lovelace", "--request-mime", "text/csv", "--accept", "text/plain")
    options += ("--accept", "0x7a", "--entry", "application/json={}", "--entry", "my/own=", "-m", "beside")
    (said,) = weirpool("call", seen, "seen", *options).objects
    assert (said["route"], said["auth"]) == ("seen", ["Simple", "ada", "lovelace"])
    assert (said["mime"], said["accept"]) == ("text/csv", ["text/plain", "message/x.rsocket.mime-type.v0"])
    entries = said["entries"]
    assert [entries[mime] for mime in ("application/json", "my/own", "application/octet-stream")] == [
        "{}",
        "",
        "beside",
    ]


def test_credentials_from_a_file_and_from_the_environment(
    weirpool: Weirpool, seen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.write_text("abc\n")
    assert weirpool("call", seen, "seen", "--auth", f"bearer:@{token}").objects[0]["auth"] == ["Bearer", "", "abc"]
    monkeypatch.setenv("WEIRPOOL_AUTH", "bearer:of the environment")
    assert weirpool("call", seen, "seen").objects[0]["auth"] == ["Bearer", "", "of the environment"]
    # The command line takes precedence.
    assert weirpool("call", seen, "seen", "--auth", "bearer:ghi").objects[0]["auth"][2] == "ghi"
    assert "of the environment" not in weirpool("call", "--help").out.decode()


def test_new_trace_is_printed(weirpool: Weirpool, seen: str) -> None:
    result = weirpool("call", seen, "seen", "--trace", "sampled")
    trace, span, sampled, debug = result.objects[0]["trace"]
    assert result.err == f"trace {trace:032x}-{span:016x}-1\n"
    assert (sampled, debug) == (True, False)


def test_given_trace_is_passed_on(weirpool: Weirpool, seen: str) -> None:
    result = weirpool("call", seen, "seen", "--trace", "000000000000002a-0000000000000001-0")
    assert (result.objects[0]["trace"], result.err) == ([42, 1, False, False], "")


@pytest.mark.parametrize(
    "arguments",
    [("--auth", "nobody"), ("--entry", "no pair"), ("--trace", "maybe"), ("--entry", "a/b=@/no/such/file")],
)
def test_malformed_options_are_wrong_use(weirpool: Weirpool, seen: str, arguments: tuple[str, str]) -> None:
    result = weirpool("call", seen, "seen", *arguments)
    assert result.code == 2
    assert_one_line(result)


def test_drafts_support_only_the_route_as_metadata(weirpool: Weirpool, seen: str) -> None:
    result = weirpool("call", seen.replace("rsocket+", "reactivesocket-0.2+"), "seen", "--auth", "bearer:geheim")
    assert result.code == 2
    assert "composite" in result.err and "geheim" not in result.err
    assert_one_line(result)


@pytest.mark.parametrize("verb", ["stream", "upload", "channel", "fire"])
def test_every_verb_takes_them(weirpool: Weirpool, server: str, verb: str) -> None:
    route = {"stream": "count", "upload": "sum", "channel": "double", "fire": "log"}[verb]
    items = ("2",) if verb in ("upload", "channel") else ()
    result = weirpool(verb, server, route, *items, "-d", "1", "--auth", "bearer:abc")
    expected = {"stream": [b"0"], "upload": [b"3"], "channel": [b"2", b"4"], "fire": []}
    assert (result.code, result.lines, result.err) == (0, expected[verb], "")


def test_collect_takes_them(weirpool: Weirpool, server: str, tmp_path: Path) -> None:
    options = ("--auth", "bearer:abc", "-d", "3", "-q", "-j", str(tmp_path / "journal"))
    assert weirpool("collect", server, "count", *options).code == 0
    assert weirpool("journal", "tail", str(tmp_path / "journal"), "--source", "count").lines == [b"0", b"1", b"2"]
