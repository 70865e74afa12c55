from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import INTEROP, Weirpool, assert_one_line, serving
from tests.schema.test_export import REFERENCE

PROGRAM = """
import msgspec
from weirpool import Service

class Symbol(msgspec.Struct):
    name: str

service = Service()

@service.call("quotes.latest")
async def latest(symbol: Symbol) -> float:
    return 1.5
"""


def test_the_schema_of_a_service_makes_a_client(weirpool: Weirpool, tmp_path: Path) -> None:
    program, client = tmp_path / "quotes_for_river.py", tmp_path / "client.py"
    program.write_text(PROGRAM)
    printed = weirpool("river", "schema", f"{program}:service")
    latest = json.loads(printed.out)["services"]["quotes"]["procedures"]["latest"]
    assert (latest["type"], latest["output"]) == ("rpc", {"type": "number"})
    (tmp_path / "schema.json").write_bytes(printed.out)
    assert weirpool("codegen", str(tmp_path / "schema.json"), "-o", str(client)).code == 0
    assert "async def latest(self, init: Symbol) -> float:" in client.read_text()
    assert weirpool("codegen", "-", stdin=printed.out).out == client.read_bytes()


def test_the_reference_is_read(weirpool: Weirpool) -> None:
    assert b"class Demo:" in weirpool("codegen", str(REFERENCE)).out


def test_wrong_service_is_one_line(weirpool: Weirpool) -> None:
    for arguments in (
        ("schema", f"{INTEROP}:nothing"),
        ("schema", "river+ws://127.0.0.1:1/"),
    ):
        result = weirpool("river", *arguments)
        assert result.code == 2
        assert_one_line(result)


@pytest.fixture(scope="module")
def places() -> Iterator[dict[str, str]]:
    """The URLs of a server of examples/interop.py by transport; it runs for the whole module."""
    urls = ("river+tcp://127.0.0.1:0?codec=msgpack", "river+ws://127.0.0.1:0/")
    with serving(f"{INTEROP}:service", *urls) as (_, listening):
        yield dict(zip(("tcp", "ws"), listening, strict=True))


@pytest.mark.parametrize("transport", ["tcp", "ws"])
def test_every_verb_speaks_it(weirpool: Weirpool, places: dict[str, str], transport: str) -> None:
    url, items = places[transport], b'{"n":2}\n{"n":3}\n'
    setup = ("--setup", '{"token":1}')
    assert weirpool("call", url, "interop.echo", "-d", '{"data":{"$t":"AAA="}}', *setup).objects == [
        {"data": {"$t": "AAA="}}
    ]
    assert weirpool("stream", url, "interop.count", "-d", '{"n": 2}').lines == [b'{"n":0}', b'{"n":1}']
    assert weirpool("upload", url, "interop.sum", "-", "-d", '{"n":1}', stdin=items).lines == [b'{"n":6}']
    doubled = weirpool("channel", url, "interop.double", "-", "-d", '{"n":1}', stdin=items)
    assert doubled.objects == [{"n": 2}, {"n": 4}, {"n": 6}]


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("call", "interop.fail", "-d", '{"n":1}'), 1, '[BOOM] boom {"n":1}'),
        (("stream", "interop.fail-stream", "-d", '{"n":1}'), 1, '[BOOM] boom {"n":1}'),
        (("call", "interop.echo", "-d", '{"data":{"$t":"!!!"}}'), 2, "'$t' must contain only bytes"),
        (("call", "interop.nothing"), 1, "[INVALID_REQUEST]"),
        (("call", "interop.slow", "-d", '{"n":"x"}'), 1, "/n: Expected `int`, got `str`"),
        (("call", "nothing"), 2, "use service.procedure"),
        (("call", "interop.echo", "-d", "{n:1}"), 2, "the data is not valid json"),
        (("call", "interop.echo", "--auth", "bearer:x"), 2, "composite metadata"),
        (("call", "interop.echo", "-m", "x"), 2, "no metadata beside an item"),
        (("fire", "interop.echo"), 2, "River does not support fire requests"),
        (("push", "x"), 2, "River does not support metadata push"),
    ],
)
def test_errors_are_one_line(
    weirpool: Weirpool, places: dict[str, str], arguments: tuple[str, ...], code: int, told: str
) -> None:
    result = weirpool(arguments[0], places["ws"], *arguments[1:])
    assert (result.code, told in result.err) == (code, True), result.err
    assert_one_line(result)


def test_wrong_codec_is_refused(weirpool: Weirpool, places: dict[str, str]) -> None:
    result = weirpool("call", places["tcp"].partition("?")[0], "interop.echo")
    assert result.code == 3 and "both sides must use the same codec, ours is json" in result.err
    assert_one_line(result)


def test_generated_client_works_over_a_unix_socket(weirpool: Weirpool, tmp_path: Path) -> None:
    with serving(f"{INTEROP}:service", f"river+unix://{tmp_path}/river.socket") as (_, urls):
        assert weirpool("call", urls[0], "interop.echo", "-d", '{"data":1}').lines == [b'{"data":1}']
