"""Reads an exported schema as what a generated client consists of: services, methods, errors and types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ..errors import LocalError, Mismatch
from ..texts import shortened
from .converter import Converter
from .export import INCOMPLETE, OTHERS
from .formats import JSON
from .named import RESERVED, is_code
from .naming import Names, camel
from .nodes import ANY, NONE, Node
from .shapes import Shapes

__all__ = ["MAX_PROCEDURES", "Api", "Client", "Error", "Method", "read_api", "read_schema"]

VERBS: Final = {"rpc": "call", "upload": "upload", "subscription": "stream", "stream": "channel", "fire": "fire"}
"""The method of a peer for each type of procedure."""
MAX_PROCEDURES: Final = 3_000
"""Procedures of one service: a client of more would take seconds to generate, and nobody could read it."""
MAX_UNIONS: Final = 8
"""Unions within unions of errors."""


class _Procedure(msgspec.Struct):
    type: str
    init: Any = msgspec.UNSET
    output: Any = msgspec.UNSET
    input: Any = msgspec.UNSET
    errors: Any = msgspec.field(default_factory=dict)
    description: str = ""


class _Service(msgspec.Struct):
    procedures: dict[str, _Procedure]
    description: str = ""


class _Export(msgspec.Struct, rename={"handshake": "handshakeSchema", "routes": OTHERS, "incomplete": INCOMPLETE}):
    services: dict[str, _Service]
    routes: dict[str, _Procedure] = {}
    handshake: Any = None
    incomplete: bool = False


_EXPORT: Final = Converter(_Export)


@dataclass(frozen=True)
class Error:
    """An error with a code. `extras` is None if it has none."""

    name: str
    code: str
    description: str
    extras: Node | None
    required: bool


@dataclass(frozen=True)
class Method:
    """One procedure.

    Attributes:
        name: Its name within its service.
        route: Its route.
        verb: What it is: call, upload, stream, channel or fire.
        description: For people.
        init: The type of the request.
        input: The type of the items that follow; None if there are none.
        output: The type of the response, or of its items.
        errors: The errors that it may fail with.

    """

    name: str
    route: str
    verb: str
    description: str
    init: Node
    input: Node | None
    output: Node
    errors: tuple[Error, ...]


@dataclass(frozen=True)
class Client:
    """The client of one service; `service` is empty for routes without a dot."""

    name: str
    service: str
    description: str
    methods: tuple[Method, ...]


@dataclass(frozen=True)
class Api:
    """Everything that is generated. `handshake` is None if clients need not introduce themselves."""

    clients: tuple[Client, ...]
    errors: tuple[Error, ...]
    handshake: Node | None
    shapes: Shapes


def read_schema(data: bytes) -> dict[str, Any]:
    """Return an exported schema, as written by `Service.schema` or by `serializeSchema` of River's reference.

    Raises:
        LocalError: `data` is not such a schema.

    """
    try:
        schema = Converter(dict[str, Any]).decode(JSON, data)
    except Mismatch as error:
        raise LocalError(f"not an exported schema of a service: {error}") from None
    _checked(schema)
    return dict(schema)


def _checked(schema: Mapping[str, Any]) -> _Export:
    try:
        export = msgspec.convert(schema, _Export)
    except msgspec.ValidationError as error:
        raise LocalError(f"not an exported schema of a service: {error}") from None
    found = list(_procedures(export))
    if len(found) > MAX_PROCEDURES:
        raise LocalError(f"the schema has {len(found):,} procedures; at most {MAX_PROCEDURES:,} are read")
    for route, _, procedure in found:
        if procedure.type not in VERBS:
            raise LocalError(f"{route} is of type {procedure.type!r}; known are {', '.join(VERBS)}")
    return export


def _procedures(export: _Export) -> Iterator[tuple[str, str, _Procedure]]:
    """Yield the route of each procedure, its service, and itself."""
    for service, each in sorted(export.services.items()):
        for name, procedure in sorted(each.procedures.items()):
            yield f"{service}.{name}", service, procedure
    for route, procedure in sorted(export.routes.items()):
        yield route, route.partition(".")[0] if "." in route.strip(".") else "", procedure


def read_api(schema: Mapping[str, Any], names: Names) -> Api:
    """Return what a client consists of; equal schemas give equal clients.

    Args:
        schema: The exported schema.
        names: The names of the module.

    Raises:
        LocalError: It is not such a schema, or it is too large.

    """
    export = _checked(schema)
    reader = _Reader(names)
    if export.incomplete:
        reader.shapes.lose("the description", "it is not complete: types or routes are missing")
    found: dict[str, list[tuple[str, _Procedure]]] = {service: [] for service in sorted(export.services)}
    for route, service, procedure in _procedures(export):
        found.setdefault(service, []).append((route, procedure))
    classes = {service: names.give(camel(service) or "Routes", "Service") for service in sorted(found)}
    clients = []
    for service, each in sorted(found.items()):
        described = export.services[service].description if service in export.services else ""
        methods = tuple(reader.method(service, route, procedure) for route, procedure in sorted(each, key=_route))
        clients.append(Client(classes[service], service, described, methods))
    shown = export.handshake
    handshake = reader.shapes.read(shown, "Handshake") if isinstance(shown, Mapping) else None
    return Api(tuple(clients), tuple(reader.errors.values()), handshake, reader.shapes)


def _route(each: tuple[str, _Procedure]) -> str:
    return each[0]


class _Reader:
    """Reads procedures. `errors` are those of all, without duplicates."""

    def __init__(self, names: Names) -> None:
        self.errors: dict[tuple[Any, ...], Error] = {}
        self.shapes = Shapes(names)
        self._names = names

    def method(self, service: str, route: str, procedure: _Procedure) -> Method:
        name = route.removeprefix(f"{service}.") if service else route
        words = (service or name, name) if service else (name,)
        verb = VERBS[procedure.type]
        init, items = procedure.init, procedure.input
        if verb not in ("upload", "channel"):
            # Older schemas of River call the request of these procedures their input.
            init, items = (items if init is msgspec.UNSET else init), msgspec.UNSET
        wanted = self._part(init, words, "Init")
        sent = self._part(items, words, "Input") if verb in ("upload", "channel") else None
        output = NONE if verb == "fire" else self._part(procedure.output, words, "Output")
        errors = dict.fromkeys(self._error(words, error) for error in self._own_errors(procedure.errors, words))
        return Method(name, route, verb, procedure.description, wanted, sent, output, tuple(errors))

    def _part(self, schema: Any, words: tuple[str, ...], part: str) -> Node:
        if schema is msgspec.UNSET:
            return self.shapes.lose(f"{'.'.join(words)} {part}", f"the procedure has no {part.lower()}")
        if schema is True or schema == {}:
            return self.shapes.lose(f"{'.'.join(words)} {part}", "any value")
        return self.shapes.read(schema, *words, part)

    def _error(self, words: tuple[str, ...], schema: Mapping[str, Any]) -> Error:
        code = schema["properties"]["code"]["const"]
        word = camel(code.lower() if code.isupper() else code) or "Failed"
        extras = schema["properties"].get("extras")
        node = None if extras is None else self.shapes.read(extras, word, "Extras")
        needed = schema.get("required")
        required = isinstance(needed, list) and "extras" in needed and node not in (ANY, NONE)
        title = schema.get("title")
        key = (code, node, required)
        if key not in self.errors:
            wanted = camel(title) if isinstance(title, str) and camel(title)[:1].isalpha() else word
            name = self._names.first(
                [wanted, f"{wanted}Error", camel(words[0], wanted), camel(*words, wanted)], "Error"
            )
            described = schema.get("description")
            self.errors[key] = Error(name, code, described if isinstance(described, str) else "", node, required)
        return self.errors[key]

    def _own_errors(self, schema: Any, words: tuple[str, ...], levels: int = MAX_UNIONS) -> Iterator[Mapping[str, Any]]:
        """Yield the procedure's own errors, each identified by a constant code."""
        if not isinstance(schema, Mapping) or not levels:
            return
        several, properties = schema.get("anyOf"), schema.get("properties")
        for each in several if isinstance(several, list) else ():
            yield from self._own_errors(each, words, levels - 1)
        code = properties.get("code") if isinstance(properties, Mapping) else None
        word = code.get("const") if isinstance(code, Mapping) else None
        if isinstance(word, str) and is_code(word):
            yield schema
        elif isinstance(word, str) and word not in RESERVED:
            self.shapes.lose(f"{'.'.join(words)} errors", f"the code {shortened(word)!r}, which is not a short line")
