"""Generated clients of routes with variables: their values are arguments."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import weirpool
from tests.schema.test_codegen import loaded, source_of
from tests.schema.type_checking import check_types
from weirpool import Service, Settings
from weirpool.schema.naming import Names
from weirpool.schema.route_variables import filled, variables_of, without_braces
from weirpool.schema.shapes import Loss
from weirpool.schema.typescript import generate_typescript


def make_service() -> Service:
    service = Service()

    @service.call("quotes.{symbol}")
    def one(count: int, symbol: str) -> str:
        return f"{count} {symbol}"

    @service.stream("quotes.{symbol}.since.{init}")
    async def since(count: int, symbol: str, init: int) -> AsyncIterator[str]:
        yield f"{count} {symbol} {init}"

    @service.call("now.{zone}")
    def now(zone: str) -> str:
        return zone

    return service


def test_variables_are_whole_segments_with_a_name() -> None:
    assert variables_of("a.{b}.{c_1}.{}.{2}.x{d}.{e") == ["b", "c_1"]
    assert without_braces("{symbol}.since.{year}") == "symbol.since.year"
    assert filled("a.{b}.$.{b}", Names(), str.upper, "<{}>".format) == (["b", "b_2"], "A.<b>.$.<b_2>")


@pytest.mark.parametrize("url", ["rsocket+memory://variables", "river+memory://variables"])
async def test_python_clients_take_variables(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = loaded(source_of(make_service().schema()), tmp_path, monkeypatch)
    settings = Settings(data_mime="application/json") if url.startswith("rsocket") else Settings()
    async with weirpool.serve(make_service(), url), weirpool.connect(url, settings=settings) as peer:
        quotes = client.Quotes(peer)
        assert await quotes.symbol("ACME", 3) == "3 ACME"
        assert [item async for item in quotes.symbol_since_init("ACME", 2025, 3)] == ["3 ACME 2025"]
        assert await client.Now(peer).zone("UTC") == "UTC"
        # A value is one segment, whatever is in it: this is not the route of a stream.
        assert await quotes.symbol("ACME.since.2025", 3) == "3 ACME.since.2025"


def test_python_clients_with_variables_are_typed(tmp_path: Path) -> None:
    path = tmp_path / "variables_client.py"
    path.write_text(source_of(make_service().schema()))
    check_types(path)


def test_typescript_clients_take_variables() -> None:
    source = generate_typescript(make_service().schema(), "rsocket")
    for line in (
        "  symbol(symbol: string | number, init: number, options: Options = {}): Promise<string> {",
        '    return this.#peer.call(`quotes.${String(symbol).split(".").join("%2E")}`, init, [], options);',
        "    return this.#peer.stream("
        '`quotes.${String(symbol).split(".").join("%2E")}.since.${String(init_).split(".").join("%2E")}`, '
        "init, [], options);",
        "  zone(zone: string | number, options: Options = {}): Promise<string> {",
    ):
        assert line in source.splitlines()


def test_clients_of_river_s_library_omit_variables() -> None:
    losses: list[Loss] = []
    assert "{symbol}" not in generate_typescript(make_service().schema(), "river", losses).partition("import")[2]
    assert ("quotes.{symbol}", "River's client cannot fill in variables of a route, and it is omitted") in [
        (loss.place, loss.reason) for loss in losses
    ]
