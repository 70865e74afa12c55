"""A description gives the same clients as the service itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from weirpool import Connection, LocalError
from weirpool.reflection.description import Described, Description
from weirpool.reflection.exported import exported
from weirpool.reflection.served import description_of
from weirpool.schema.codegen import generate_python
from weirpool.schema.procedures import MAX_PROCEDURES, read_schema
from weirpool.schema.shapes import Loss

from .quotes import service

EXPORT = exported(description_of(service, Connection("rsocket", "", False)))


def test_has_the_procedures_of_the_services_own_schema() -> None:
    own = service.schema()["services"]
    assert {name: each["procedures"].keys() for name, each in EXPORT["services"].items()} == {
        name: each["procedures"].keys() for name, each in own.items()
    }
    latest = EXPORT["services"]["quotes"]["procedures"]["latest"]
    assert latest["description"] == "Return the price of the last trade." and latest["type"] == "rpc"
    codes = [each["properties"]["code"]["const"] for each in latest["errors"]["anyOf"]]
    assert codes[0] == "UNKNOWN_SYMBOL"
    # The class of a generated client has the same name, wherever the schema is from.
    assert latest["errors"]["anyOf"][0]["title"] == "Unknown"


def test_a_client_can_be_generated_from_it() -> None:
    source = generate_python(read_schema(json.dumps(EXPORT).encode()))
    compile(source, "client.py", "exec")
    assert "class Quotes:" in source and ": bytes" in source


def test_definitions_are_included_where_they_are_used() -> None:
    latest = EXPORT["services"]["quotes"]["procedures"]["latest"]
    assert latest["init"] == {"$ref": "#/$defs/Symbol", "$defs": {"Symbol": latest["init"]["$defs"]["Symbol"]}}


def test_a_description_of_very_many_routes_is_refused() -> None:
    routes = [Described(f"a.r{number}", "call") for number in range(MAX_PROCEDURES + 1)]
    with pytest.raises(LocalError, match="at most 3,000"):
        exported(Description(1, routes=routes))


def test_definitions_that_are_searched_again_and_again_are_refused() -> None:
    chain: dict[str, Any] = {f"C{n}": {"properties": {"a": {"$ref": f"#/$defs/C{n + 1}"}}} for n in range(3_000)}
    routes = [Described(f"a.r{n}", "call", request={"$ref": "#/$defs/C0", "title": f"T{n}"}) for n in range(1_000)]
    with pytest.raises(LocalError, match="the definitions of the description take"):
        exported(Description(1, routes=routes, definitions=chain))


def test_what_is_not_described_is_a_loss() -> None:
    losses: list[Loss] = []
    generate_python(
        exported(Description(1, routes=[Described("a.b", "call", response={"type": "string"})], complete=False)), losses
    )
    assert "it is not complete: types or routes are missing" in [loss.reason for loss in losses]
