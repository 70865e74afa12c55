"""`weirpool describe`: for people, for programs, and what it says of servers that do not describe themselves."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Weirpool, assert_one_line, command, serving

QUOTES = f"{Path(__file__).parents[1] / 'reflection' / 'quotes.py'}:service"


@pytest.fixture(scope="module")
def described() -> Iterator[list[str]]:
    """The URLs of a server that describes itself."""
    urls = ["rsocket+tcp://127.0.0.1:0", "river+tcp://127.0.0.1:0"]
    with serving(QUOTES, *urls, options=["--reflection", "--set", "software=quotes 1.4"]) as (_, found):
        yield found


def test_lists_routes_with_kinds_types_and_documentation(weirpool: Weirpool, described: list[str]) -> None:
    for url in described:
        result = weirpool("describe", url)
        assert (result.code, result.err) == (0, "")
        text = result.out.decode()
        assert "quotes 1.4" in text
        assert "quotes.live(Symbol) -> stream of Quote {symbol: str, price: float}" in text
        assert re.search(r"^call +quotes\.latest.* Return the price", text, re.MULTILINE)
        assert all(line == line.rstrip() for line in text.splitlines())


def test_shows_one_route_with_types_errors_and_an_example(weirpool: Weirpool, described: list[str]) -> None:
    text = weirpool("describe", described[0], "orders.echo").out.decode()
    assert text.startswith("channel orders.echo(Symbol, stream of Leg) -> stream of Leg\n")
    assert "  count: int  (at least 1, at most 1000)\n" in text
    assert (
        "fails with UNKNOWN_SYMBOL: There is no such symbol."
        in weirpool("describe", described[0], "quotes.latest").out.decode()
    )
    assert "the handler has no types" in weirpool("describe", described[0], "log").out.decode()


@pytest.mark.parametrize("route", ["quotes.latest", "orders.load", "orders.echo", "orders.place"])
@pytest.mark.parametrize("number", [0, 1], ids=["rsocket", "river"])
def test_the_example_runs(weirpool: Weirpool, described: list[str], route: str, number: int) -> None:
    *_, example = weirpool("describe", described[number], route).out.decode().splitlines()
    shell = f'weirpool() {{ {shlex.join(command())} "$@"; }}\n{example}\n'
    result = subprocess.run(["sh", "-c", shell], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "") and json.loads(result.stdout.splitlines()[0]) is not None


def test_json_is_the_document(weirpool: Weirpool, described: list[str]) -> None:
    document = json.loads(weirpool("describe", described[0], "--json").out)
    assert document["version"] == 1 and len(document["routes"]) == 8 and "Quote" in document["$defs"]
    one = json.loads(weirpool("describe", described[0], "quotes.latest", "--json").out)
    assert [each["route"] for each in one["routes"]] == ["quotes.latest"] and sorted(one["$defs"]) == [
        "Quote",
        "Symbol",
    ]


def test_an_unknown_route_is_wrong_use(weirpool: Weirpool, described: list[str]) -> None:
    result = weirpool("describe", described[0], "quotes.lates")
    assert result.code == 2 and "did you mean 'quotes.latest'?" in result.err
    assert_one_line(result)


def test_a_server_that_does_not_describe_itself_is_exit_code_1(weirpool: Weirpool, server: str) -> None:
    result = weirpool("describe", server)
    assert (result.code, result.out) == (1, b"") and "weirpool serve --reflection" in result.err
    assert_one_line(result)


def test_no_server_is_exit_code_3(weirpool: Weirpool, tmp_path: Path) -> None:
    result = weirpool("describe", f"rsocket+unix://{tmp_path}/nobody")
    assert result.code == 3
    assert_one_line(result)


def test_texts_of_the_server_are_not_markup(weirpool: Weirpool, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "from weirpool import Service\nservice = Service()\n\n@service.call('[red]a\\x1b[2J')\ndef a(request):\n"
        "    '''[bold]about[/bold] \\x1b]0;title\\x07'''\n    return request\n"
    )
    with serving(f"{tmp_path}/app.py:service", "rsocket+tcp://127.0.0.1:0", options=["--reflection"]) as (_, [url]):
        out = weirpool("describe", url).out
    assert b"[red]a\\x1b[2J" in out and b"[bold]about[/bold]" in out and b"\x1b" not in out


def test_the_example_contains_no_secret_and_names_the_context(
    weirpool: Weirpool, described: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    *_, example = weirpool(
        "describe", described[0], "log", "--auth", "bearer:known", "--setup", "known", "--set", "credit=5"
    ).out.decode().splitlines()  # fmt: skip
    assert example == (
        f"weirpool fire {described[0]} log -d data --setup '(hidden)' --set credit=5 --auth '(hidden)'"
        if " -d " in example
        else f"weirpool fire {described[0]} log --setup '(hidden)' --set credit=5 --auth '(hidden)'"
    )
    weirpool("context", "add", "dev", described[0], "--auth", "bearer:known", "--data-mime", "application/json")
    for arguments in (("@dev", "quotes.latest"), ("quotes.latest",)):
        *_, example = weirpool("describe", *arguments).out.decode().splitlines()
        assert example.startswith("weirpool call @dev quotes.latest ") and "known" not in example
        assert "--data-mime" not in example
