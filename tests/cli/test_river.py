from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import INTEROP, Penstock, assert_one_line
from tests.schema.test_export import REFERENCE

PROGRAM = """
import msgspec
from penstock import Service

class Symbol(msgspec.Struct):
    name: str

service = Service()

@service.call("quotes.latest")
async def latest(symbol: Symbol) -> float:
    return 1.5
"""


def test_the_schema_of_a_service_makes_a_client(penstock: Penstock, tmp_path: Path) -> None:
    program, client = tmp_path / "quotes_for_river.py", tmp_path / "client.py"
    program.write_text(PROGRAM)
    printed = penstock("river", "schema", f"{program}:service")
    latest = json.loads(printed.out)["services"]["quotes"]["procedures"]["latest"]
    assert (latest["type"], latest["output"]) == ("rpc", {"type": "number"})
    (tmp_path / "schema.json").write_bytes(printed.out)
    assert penstock("river", "codegen", str(tmp_path / "schema.json"), "-o", str(client)).code == 0
    assert "async def latest(self, init: QuotesLatestInit) -> float:" in client.read_text()
    assert penstock("river", "codegen", "-", stdin=printed.out).out == client.read_bytes()


def test_the_reference_is_read(penstock: Penstock) -> None:
    assert b"class Demo:" in penstock("river", "codegen", str(REFERENCE)).out


def test_what_is_no_schema_and_what_is_no_service_is_one_line(penstock: Penstock, tmp_path: Path) -> None:
    (tmp_path / "wrong.json").write_text("[]")
    for arguments in (
        ("codegen", str(tmp_path / "wrong.json")),
        ("codegen", str(tmp_path / "none.json")),
        ("schema", f"{INTEROP}:nothing"),
        ("schema", "river+ws://127.0.0.1:1/"),
    ):
        result = penstock("river", *arguments)
        assert result.code == 2
        assert_one_line(result)
