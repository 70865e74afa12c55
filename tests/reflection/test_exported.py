"""A description gives the same clients as the service itself."""

from __future__ import annotations

import json

from penstock import Connection
from penstock.reflection.exported import exported
from penstock.reflection.served import description_of
from penstock.schema.codegen import generate_python
from penstock.schema.procedures import read_schema

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
