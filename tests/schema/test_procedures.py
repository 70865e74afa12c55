from __future__ import annotations

from typing import Any

from weirpool.schema.naming import Names
from weirpool.schema.nodes import NONE, Scalar
from weirpool.schema.procedures import Api, read_api

TEXT = {"type": "string"}


def error(code: str, **extras: Any) -> dict[str, Any]:
    properties = {"code": {"type": "string", "const": code}, "message": TEXT} | extras
    return {"type": "object", "required": list(properties), "properties": properties}


def read(**procedures: Any) -> Api:
    return read_api({"services": {"shop": {"procedures": procedures}}}, Names())


def test_errors_of_one_code_and_shape_are_one_class() -> None:
    gone, other = error("NOT_FOUND"), error("NOT_FOUND", extras=TEXT)
    procedure = {"type": "rpc", "init": TEXT, "output": TEXT}
    api = read(a=procedure | {"errors": {"anyOf": [gone, error("CANCEL")]}}, b=procedure | {"errors": gone},
               c=procedure | {"errors": other})  # fmt: skip
    assert [each.name for each in api.errors] == ["NotFound", "NotFoundError"]
    first, second, third = (method.errors for method in api.clients[0].methods)
    assert first == second != third


def test_older_schemas_call_the_request_its_input() -> None:
    method = read(a={"type": "rpc", "input": TEXT, "output": {"type": "null"}}).clients[0].methods[0]
    assert (method.init, method.input, method.output) == (Scalar("text"), None, NONE)


def test_missing_parts_are_reported() -> None:
    losses = read(a={"type": "upload", "output": {}}).shapes.losses
    assert [(loss.place, loss.reason) for loss in losses] == [
        ("shop.a Init", "the procedure has no init"),
        ("shop.a Input", "the procedure has no input"),
        ("shop.a Output", "any value"),
    ]


def test_routes_of_no_service_have_a_class() -> None:
    schema = {"services": {}, "routes": {"log": {"type": "fire", "init": TEXT}, "a.b": {"type": "fire", "init": TEXT}}}
    clients = read_api(schema, Names()).clients
    assert [(each.name, [(one.name, one.route) for one in each.methods]) for each in clients] == [
        ("Routes", [("log", "log")]),
        ("A", [("b", "a.b")]),
    ]
