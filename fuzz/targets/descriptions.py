"""Descriptions of peers, and everything that is made from one: types, examples, commands, programs, clients, mocks."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from tests.builds import Build
from tests.untrusted.hostile import HOSTILE, filled, named

from fuzz.outcomes import attempt

LINES: Final = True
URL: Final = "rsocket+tcp://localhost:7878"
MAX_ROUTES: Final = 4
WORDS: Final = (
    b'"type":',
    b'"properties":{',
    b'"items":',
    b'"anyOf":[',
    b'"allOf":[',
    b'"$ref":"#/$defs/A"',
    b'"enum":[',
    b'"required":[',
    b'"const":',
    b'"minItems":9',
    b'"prefixItems":[',
    b'"pattern":"(a+)+$"',
    b'"kind":"channel"',
    b"\\u001b]52;",
    b"\\u202e",
    b"$(x)",
    b"'",
    b"\\n",
    b"*/",
    b'\\"\\"\\"',
    b"null",
    b"true",
    b"1e999",
    b"[[]]",
    b"{}",
    b'"default":',
    b'"multipleOf":0',
)
SHAPES: Final[tuple[dict[str, Any], ...]] = (
    {"type": "object", "properties": "abc", "required": 5},
    {"type": [["x"]]},
    {"allOf": [{"type": []}, {"type": [], "minimum": 1}]},
    {"type": "array", "items": 3, "minItems": "x"},
    {"enum": {"a": 1}, "$ref": ["#/$defs/a"]},
    {"anyOf": [{"const": {"a": 1}}, {"properties": {"": {"type": "string"}}, "required": [""]}]},
)


def seeds() -> Iterator[bytes]:
    """Yield descriptions of a service, of hostile texts and of malformed schemas, in each encoding."""
    from tests.reflection.quotes import service

    from weirpool import Connection
    from weirpool.reflection.served import description_of

    described = msgspec.to_builtins(description_of(service, Connection("rsocket", "", False)))
    yield msgspec.json.encode(described)
    yield msgspec.msgpack.encode(described)
    for text in HOSTILE:
        yield json.dumps(filled(text)).encode()
    for each in named("a\x1bb"):
        yield json.dumps(each).encode()
    for schema in SHAPES:
        error = {"code": "BAD", "extras": schema}
        route = {
            "route": "a.b",
            "kind": "channel",
            "request": schema,
            "items": schema,
            "response": schema,
            "errors": [error],
        }
        yield json.dumps({"version": 1, "routes": [route], "$defs": {"A": schema}}).encode()


def outcome(build: Build, data: bytes) -> object:
    """Return what is made of a description; what people copy is printable, and programs parse."""
    reflection, schema = "weirpool.reflection", "weirpool.schema"
    description = attempt(build, build.module(f"{reflection}.description").read, data)
    if isinstance(description, tuple):
        return description
    description.routes = description.routes[:MAX_ROUTES]
    found = [_route(build, each, description.definitions) for each in description.routes]
    exported = attempt(build, build.module(f"{reflection}.exported").exported, description)
    if isinstance(exported, tuple):
        return found, exported
    source = attempt(build, build.module(f"{schema}.codegen").generate_python, exported)
    if isinstance(source, str):
        ast.parse(source)
    typescript = build.module(f"{schema}.typescript")
    others = [attempt(build, typescript.generate_typescript, exported, each) for each in typescript.FLAVOURS]
    for text in (source, *others):
        assert not isinstance(text, str) or text.replace("\n", "").isprintable()
    return found, source, others, _mocked(build, exported)


def _route(build: Build, route: Any, table: Any) -> object:
    """Return the texts of a route, as they are shown and copied."""
    notation, commands = (build.module(f"weirpool.reflection.{name}") for name in ("notation", "commands"))
    example = build.module("weirpool.reflection.examples").example
    shown_line = build.module("weirpool.texts").shown_line
    data, item = (json.dumps(example(each, table)) for each in (route.request, route.items))
    items = [item] * 2 if route.kind in ("upload", "channel") else []
    command = attempt(build, commands.as_command, URL, route.route, route.kind, data, items)
    program = commands.as_python(URL, route.route, route.kind, data, items, {"data_mime": "application/json"})
    assert isinstance(command, tuple) or command.isprintable()
    ast.parse(program)
    lines = [notation.signature(route, table), *notation.field_lines(route.response), program.replace("\n", "")]
    assert all(shown_line(line).isprintable() or not line.isprintable() for line in lines)
    return command, program, lines


def _mocked(build: Build, exported: Any) -> object:
    """Return the routes of a mock, whose values can be encoded."""
    procedures = attempt(build, build.module("weirpool.cli.schemas").procedures, exported, "it")
    if isinstance(procedures, tuple):
        return procedures
    kinds, service = build.module("weirpool.cli.schemas").KIND_OF, build.module("weirpool.mocking.service")
    wanted = {route: (kinds[each["type"]], each) for route, each in procedures.items()}
    made = attempt(build, service.mock_service, wanted, service.MockOptions())
    return made if isinstance(made, tuple) else made.routes()
