from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import INTEROP, Weirpool, assert_one_line, serving

PROGRAM = """
from weirpool import Service

service = Service()

@service.call("quotes.latest")
async def latest(symbol: str) -> float:
    return 1.5

service.call("quotes.raw")(lambda request: request)
"""


def test_a_service_makes_clients(weirpool: Weirpool, tmp_path: Path) -> None:
    program, client = tmp_path / "quotes_for_codegen.py", tmp_path / "client.ts"
    program.write_text(PROGRAM)
    assert b"class Quotes:" in weirpool("codegen", f"{program}:service").out
    assert weirpool("codegen", f"{program}:service", "--ts", "rsocket", "-o", str(client)).code == 0
    assert "latest(init: string" in client.read_text()


def test_what_is_lost_is_said_and_strict_refuses(weirpool: Weirpool, tmp_path: Path) -> None:
    program = tmp_path / "raw_for_codegen.py"
    program.write_text(PROGRAM)
    result = weirpool("codegen", f"{program}:service")
    assert (result.code, "Any: quotes.raw Init: any value" in result.err) == (0, True)
    strict = weirpool("codegen", f"{program}:service", "--strict")
    assert (strict.code, strict.out) == (2, b"")
    assert_one_line(strict)


def test_a_file_that_cannot_be_written_is_wrong_use(weirpool: Weirpool, tmp_path: Path) -> None:
    program = tmp_path / "quotes_for_codegen.py"
    program.write_text(PROGRAM)
    result = weirpool("codegen", f"{program}:service", "-o", str(tmp_path / "none" / "client.py"))
    assert result.code == 2
    assert "cannot write" in result.err.splitlines()[-1]


def test_wrong_sources_and_options_are_one_line(weirpool: Weirpool, tmp_path: Path) -> None:
    (tmp_path / "wrong.json").write_text("[]")
    for arguments in (
        (str(tmp_path / "wrong.json"),),
        (str(tmp_path / "none.json"),),
        (f"{INTEROP}:nothing",),
        (f"{INTEROP}:service", "--ts", "grpc"),
        (f"{INTEROP}:service", "--ts", "rsocket", "--py"),
    ):
        result = weirpool("codegen", *arguments)
        assert result.code == 2
        assert_one_line(result)


def test_a_server_that_describes_itself_makes_clients(
    weirpool: Weirpool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    program = tmp_path / "described_for_codegen.py"
    program.write_text(PROGRAM)
    with serving(f"{program}:service", "rsocket+tcp://127.0.0.1:0", options=["--reflection"]) as (_, [url]):
        made = weirpool("codegen", url)
        assert (made.code, b"class Quotes:" in made.out) == (0, True)
        assert weirpool("context", "add", "dev", url).code == 0
        assert weirpool("codegen", "@dev").out == made.out
    with serving(f"{program}:service", "rsocket+tcp://127.0.0.1:0") as (_, [url]):
        silent = weirpool("codegen", url)
        assert (silent.code, silent.out) == (1, b"")
        assert_one_line(silent)
