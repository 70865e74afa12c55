"""Every verb that listens lets clients of other machines in only with credentials, or because the user says so."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import SEEN, Weirpool
from weirpool.cli.entrance import entrance
from weirpool.errors import LocalError, SetupRejected
from weirpool.recording.format import Event, Head, encode

CLI = Path(__file__).parents[2] / "src/weirpool/cli"
CERTIFICATES = "?cert={0}/cert.pem&key={0}/key.pem&ca={0}/ca.pem"
UPSTREAM = "rsocket+tcp://127.0.0.1:1"

# The verbs, and the words before and after the URL that each listens on. `{0}` is a folder with the files they need.
VERBS: dict[str, tuple[str, ...]] = {
    "serve": ("serve", SEEN, "URL"),
    "bridge": ("bridge", "URL", UPSTREAM),
    "mock": ("mock", "{0}/schema.json", "URL"),
    "playground": ("playground", "URL"),
    "record": ("record", "--listen", "URL", "--to", UPSTREAM, "-o", "{0}/file", "--yes"),
    "replay": ("replay", "{0}/recording", "--listen", "URL"),
    "collect --listen": ("collect", "--listen", "URL", "--receive", "in", "-j", "{0}/in"),
    "collect --serve": ("collect", UPSTREAM, "r", "-j", "{0}/j", "--serve", "URL"),
    "collect --config --serve": ("collect", "--config", "{0}/feeds.toml", "--serve", "URL"),
    "collect --config --check": ("collect", "--config", "{0}/feeds.toml", "--serve", "URL", "--check"),
}
# Those whose token is in a variable; the others have --auth.
BY_VARIABLE = {"collect --serve", "collect --config --serve", "collect --config --check"}
PAGES: dict[str, tuple[str, ...]] = {
    "collect --http": ("collect", "--config", "{0}/feeds.toml", "--http", "URL"),
    "collect --http --check": ("collect", "--config", "{0}/feeds.toml", "--http", "URL", "--check"),
    **{f"{verb} --metrics": (*VERBS[verb][:-1], UPSTREAM, "--metrics", "URL") for verb in ("serve", "playground")},
    "mock --metrics": (*VERBS["mock"][:-1], UPSTREAM, "--metrics", "URL"),
    "bridge --metrics": ("bridge", UPSTREAM, UPSTREAM, "--metrics", "URL"),
}
LOCAL = ["rsocket+tcp://127.0.0.1:0", "rsocket+tcp://localhost:0", "rsocket+tcp://[::1]:0", "rsocket+unix://{0}/s"]
OPEN = ["rsocket+tcp://:0", "rsocket+tcp://0.0.0.0:0", "rsocket+ws://[::]:0", "rsocket+tcp://collector.test:0"]


class Began(BaseException):
    """A verb has checked everything, and begins."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a schema, a recording and feeds."""
    call = '{"type": "rpc", "init": {}, "output": {}}'
    (tmp_path / "schema.json").write_text('{"services": {"a": {"procedures": {"b": %s}}}}' % call)  # noqa: UP031
    events = [Event(0.0, 1, "request", kind="call", route="r", data=""), Event(0.0, 1, "end")]
    (tmp_path / "recording").write_bytes(b"".join(map(encode, (Head(1, UPSTREAM, "now"), *events))))
    (tmp_path / "feeds.toml").write_text(f'[feed.a]\nurl = "{UPSTREAM}"\nroute = "r"\njournal = "j"\n')
    return tmp_path


@pytest.fixture
def begins(
    weirpool: Weirpool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Sequence[str], str, Sequence[str]], str]:
    """Return why a verb refuses to listen at a URL with more options; empty if it begins."""
    monkeypatch.delenv("WEIRPOOL_SERVE_TOKEN", raising=False)
    monkeypatch.delenv("WEIRPOOL_AUTH", raising=False)

    def run(work: Any) -> None:
        work.close()
        raise Began

    monkeypatch.setattr("weirpool.aio.loop.run", run)

    def tried(words: Sequence[str], url: str, more: Sequence[str] = ()) -> str:
        arguments = [url if word == "URL" else word for word in (*words, *more)]
        try:
            result = weirpool(*(word.format(folder) for word in arguments))
        except Began:
            return ""
        if "--check" in words and result.code == 0:
            return ""
        assert result.code == 2, result
        return result.err

    return tried


Begins = Callable[..., str]


@pytest.mark.parametrize("verb", VERBS)
def test_clients_of_this_machine_need_no_credentials(begins: Begins, verb: str) -> None:
    for url in LOCAL:
        assert begins(VERBS[verb], url) == ""


@pytest.mark.parametrize("verb", VERBS)
def test_clients_of_other_machines_need_credentials(begins: Begins, verb: str) -> None:
    for url in OPEN:
        refusal = begins(VERBS[verb], url)
        assert "clients need no credentials" in refusal and "let anybody connect with --allow-anonymous" in refusal
        assert begins(VERBS[verb], url, ["--allow-anonymous"]) == ""


@pytest.mark.parametrize("verb", VERBS)
def test_a_token_is_enough(begins: Begins, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if verb in BY_VARIABLE:
        monkeypatch.setenv("WEIRPOOL_SERVE_TOKEN", "t0ken")
        more = []
    else:
        more = ["--auth", "bearer:t0ken"]
    assert begins(VERBS[verb], OPEN[1], more) == ""


@pytest.mark.parametrize("verb", VERBS)
def test_a_certificate_of_each_client_is_enough(begins: Begins, verb: str) -> None:
    files = "?cert={0}/cert.pem&key={0}/key.pem"
    assert begins(VERBS[verb], f"rsocket+tls://0.0.0.0:0{files}&ca={{0}}/ca.pem") == ""
    assert "--allow-anonymous" in begins(VERBS[verb], f"rsocket+tls://0.0.0.0:0{files}")
    assert "--allow-anonymous" in begins(VERBS[verb], f"rsocket+quic://0.0.0.0:0{files}&ca={{0}}/ca.pem")


@pytest.mark.parametrize("verb", PAGES)
def test_pages_over_http_are_for_this_machine(begins: Begins, verb: str) -> None:
    for place in ("0", "127.0.0.1:0", "localhost:0", "[::1]:0"):
        assert begins(PAGES[verb], place) == ""
    for place in ("0.0.0.0:0", "[::]:0", "collector.test:0"):
        assert "let anybody connect with --allow-anonymous" in begins(PAGES[verb], place)
        assert begins(PAGES[verb], place, ["--allow-anonymous"]) == ""


def test_a_table_of_a_file_needs_credentials_or_a_key(begins: Begins, folder: Path) -> None:
    feeds = folder / "feeds.toml"
    text = feeds.read_text()
    words = ("collect", "--config", "{0}/feeds.toml", "--check")
    feeds.write_text(f'{text}[serve]\nurl = "{OPEN[0]}"\n')
    assert "--allow-anonymous" in begins(words, "")
    for more in ('token = "t0ken"\n', "allow_anonymous = true\n"):
        feeds.write_text(f'{text}[serve]\nurl = "{OPEN[0]}"\n{more}')
        assert begins(words, "") == ""


def test_an_option_without_effect_is_refused(begins: Begins) -> None:
    refusal = begins(("collect", UPSTREAM, "r", "-j", "{0}/j", "--allow-anonymous"), "")
    assert "not used without --config and --listen: --allow-anonymous" in refusal


def test_the_acceptor_admits_the_right_credentials() -> None:
    assert entrance([LOCAL[0]], None, False) is None
    with pytest.raises(LocalError, match="--auth needs composite metadata"):
        entrance(["river+tcp://127.0.0.1:0"], "bearer:t0ken", False)
    acceptor: Any = entrance([LOCAL[0]], "bearer:t0ken", False)
    assert acceptor is not None
    with pytest.raises(SetupRejected):
        acceptor(_Shown())


class _Shown:
    """A set-up without credentials."""

    class payload:
        metadata = None


# The modules of verbs that open a port to this machine only, wherever they are told to connect.
LOCAL_ONLY = {"ui": "open_door listens on 127.0.0.1", "demo": "its publisher listens on localhost"}
OPENERS = {"serve", "bridge", "bridged", "listen", "listening", "open_door", "Host", "collect_feeds", "publisher"}


def test_every_module_that_listens_is_tried_here() -> None:
    tried = {words[0] for words in VERBS.values()} | LOCAL_ONLY.keys()
    # Parts of the verb `collect`.
    parts = {"listen": "collect", "feeds": "collect"}
    for path in CLI.rglob("*.py"):
        tree = ast.parse(path.read_text())
        names = {
            node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        if names & OPENERS:
            assert parts.get(path.stem, path.stem) in tried, f"{path.name} listens: add it to VERBS"
