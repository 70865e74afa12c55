"""Generates a TypeScript module for River's reference: TypeBox schemas, and the services of a typed client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from .nodes import Array, Choice, Node, Record, Reference, Scalar, Struct, Tuple, Union
from .procedures import Api, Client, Error, Method
from .route_variables import variables_of
from .typescript_types import TypescriptTypes, jsdoc, key, quoted

__all__ = ["MODERN", "OLD", "Dialect", "river_source"]

SCALARS: Final = {
    "any": "Unknown",
    "none": "Null",
    "number": "Number",
    "integer": "Integer",
    "boolean": "Boolean",
    "bytes": "Uint8Array",
}
EXTENSIONS: Final = {"Date": "Date", "bigint": "BigInt", "void": "Void", "undefined": "Undefined"}
FORMATS: Final = {
    "datetime": "date-time", "date": "date", "time": "time", "duration": "duration", "uuid": "uuid",
    "decimal": "decimal",
}  # fmt: skip
TYPES: Final = {"call": "rpc", "upload": "upload", "stream": "subscription", "channel": "stream"}
UNIMPLEMENTED: Final = [
    "/** The handlers run on the server; a client only needs their types. */",
    "const remote = async (): Promise<never> => {",
    '  throw new Error("this procedure runs on the server");',
    "};",
]


@dataclass(frozen=True)
class Dialect:
    """How a version of the library describes procedures.

    Attributes:
        imports: What it exports to define services.
        before: Lines before the services.
        parts: The names of init, input, output and errors, for each type of procedure.
        only_objects: Whether every part must be an object.
        client: What a typed client is created with.

    """

    imports: str
    before: tuple[str, ...]
    parts: Mapping[str, tuple[str, str, str, str]]
    only_objects: bool
    client: str


_NEW: Final = ("requestInit", "requestData", "responseData", "responseError")
MODERN: Final = Dialect(
    "Procedure, createServiceSchema",
    ("const ServiceSchema = createServiceSchema();",),
    {kind: _NEW for kind in TYPES.values()},
    False,
    "createClient<typeof services>(transport, serverId)",
)
"""Version 0.200 and newer, which speak River 2.0."""
_BOTH: Final = ("init", "input", "output", "errors")
_ONE: Final = ("input", "", "output", "errors")
OLD: Final = Dialect(
    "Procedure, ServiceSchema, type Server",
    (),
    {"rpc": _ONE, "subscription": _ONE, "upload": _BOTH, "stream": _BOTH},
    True,
    "createClient<Services>(transport, serverId)",
)
"""Version 0.17, which speaks River 1.1."""


def river_source(api: Api, dialect: Dialect) -> list[list[str]]:
    """Return the blocks of a module with a TypeBox schema for each type, and a service schema for each service.

    Procedures that River does not have, or the version cannot describe, are recorded as losses.
    """
    types = TypescriptTypes("Uint8Array", extended=True)
    schemas = _Schemas(types)
    clients = [_service(client, _supported(client, dialect, api), schemas, dialect) for client in api.clients]
    clients = [block for block in clients if block]
    if api.handshake is not None:
        schemas.schema(api.handshake)
    names = [client.service for client in api.clients if client.service]
    consts = {client.service: f"{client.name}Service" for client in api.clients}
    table = ["export const services = {", *(f"  {key(name)}: {consts[name]}," for name in names), "};"]
    example = f"/** The services: `{dialect.client}` returns a typed client. */"
    block = [example, *table, *(["", "export type Services = Server<typeof services>;"] if dialect is OLD else [])]
    imports = [
        f'import {{ {dialect.imports} }} from "@replit/river";',
        'import { Type } from "@sinclair/typebox";',
    ]
    before = [list(dialect.before)] if dialect.before else []
    return [imports, *before, *types.render(), *schemas.render(), UNIMPLEMENTED, *clients, block]


def _supported(client: Client, dialect: Dialect, api: Api) -> list[Method]:
    found = []
    for method in client.methods:
        parts = [method.init, method.output, *([] if method.input is None else [method.input])]
        if method.verb not in TYPES or not client.service:
            api.shapes.lose(method.route, "River has no such procedure, and it is omitted")
        elif variables_of(method.route):
            api.shapes.lose(method.route, "River's client cannot fill in variables of a route, and it is omitted")
        elif dialect.only_objects and not all(map(_is_object, parts)):
            api.shapes.lose(method.route, "this version only carries objects, and it is omitted")
        else:
            found.append(method)
    return found


def _is_object(node: Node) -> bool:
    members = node.members if isinstance(node, Union) else (node,)
    return all(isinstance(one, Reference) for one in members)


def _service(client: Client, methods: list[Method], schemas: _Schemas, dialect: Dialect) -> list[str]:
    if not client.service:
        return []
    lines = [*jsdoc(client.description), f"export const {client.name}Service = ServiceSchema.define({{"]
    for method in methods:
        kind = TYPES[method.verb]
        init, items, output, errors = dialect.parts[kind]
        lines += [*jsdoc(method.description, "  "), f"  {key(method.name)}: Procedure.{kind}({{"]
        lines.append(f"    {init}: {schemas.schema(method.init)},")
        if method.input is not None:
            lines.append(f"    {items}: {schemas.schema(method.input)},")
        lines.append(f"    {output}: {schemas.schema(method.output)},")
        if method.errors:
            lines.append(f"    {errors}: {schemas.errors(method.errors)},")
        lines += ["    handler: remote,", "  }),"]
    return [*lines, "});"]


class _Schemas:
    """The TypeBox schemas of a module: a constant for each object, named like its type."""

    def __init__(self, types: TypescriptTypes) -> None:
        self._types = types
        self._blocks: dict[str, list[str]] = {}
        # An object within itself is only named.
        self._open: set[Struct] = set()

    def render(self) -> list[list[str]]:
        return list(self._blocks.values())

    def errors(self, errors: tuple[Error, ...]) -> str:
        """Return the schema of one of several errors."""
        for error in errors:
            if error.name not in self._blocks:
                fields = [f"  code: Type.Literal({quoted(error.code)}),", "  message: Type.String(),"]
                if error.extras is not None:
                    inner = self.schema(error.extras)
                    fields.append(f"  extras: {inner if error.required else f'Type.Optional({inner})'},")
                head = [*jsdoc(error.description), f"export const {error.name} = Type.Object({{"]
                self._blocks[error.name] = [*head, *fields, "});"]
        names = [error.name for error in errors]
        return names[0] if len(names) == 1 else f"Type.Union([{', '.join(names)}])"

    def schema(self, node: Node, **more: Any) -> str:
        """Return the schema of a type as an expression, and declare what it needs; `more` are its options."""
        self._types.type_of(node)
        if isinstance(node, Scalar):
            return self._scalar(node, more)
        if isinstance(node, Choice):
            literals = [f"Type.Literal({quoted(value)})" for value in node.values]
            return _union(literals, more) if len(literals) > 1 else literals[0]
        if isinstance(node, Array):
            return f"Type.Array({self.schema(node.item)}{_options(dict(node.limits) | more)})"
        if isinstance(node, Tuple):
            return f"Type.Tuple([{', '.join(map(self.schema, node.items))}]{_options(more)})"
        if isinstance(node, Record):
            options = _options(dict(node.limits) | more)
            return f"Type.Record(Type.String(), {self.schema(node.value)}{options})"
        if isinstance(node, Union):
            return _union([self.schema(one) for one in node.members], more)
        assert isinstance(node, Reference)
        return self._reference(node.struct)

    def _scalar(self, node: Scalar, more: Mapping[str, Any]) -> str:
        name = EXTENSIONS[node.format] if node.format else SCALARS.get(node.kind, "String")
        # Formats are not checked unless they are registered, and an unknown format fails every value.
        noted = {"description": f"format {FORMATS[node.kind]}"} if node.kind in FORMATS and not node.format else {}
        return f"Type.{name}({_options(dict(node.limits) | noted | dict(more)).removeprefix(', ')})"

    def _reference(self, struct: Struct) -> str:
        name = struct.name
        if struct in self._open:
            # TypeBox has no other form for types that contain each other; the inner value is not checked.
            return f"Type.Unsafe<{name}>(Type.Unknown())"
        if name not in self._blocks:
            self._open.add(struct)
            lines = list(self._fields(struct))
            self._open.discard(struct)
            options = _options({"description": struct.description} if struct.description else {})
            self._blocks[name] = [f"export const {name} = Type.Object({{", *lines, f"}}{options});"]
        return name

    def _fields(self, struct: Struct) -> Iterator[str]:
        for field in struct.fields:
            more = {"description": field.description} if field.description else {}
            more |= {"default": field.default[0]} if field.default else {}
            inner = self.schema(field.node, **more)
            yield f"  {key(field.key)}: {inner if field.required else f'Type.Optional({inner})'},"


def _union(parts: list[str], more: Mapping[str, Any]) -> str:
    return f"Type.Union([{', '.join(parts)}]{_options(more)})"


def _options(options: Mapping[str, Any]) -> str:
    return f", {{ {', '.join(f'{name}: {quoted(value)}' for name, value in options.items())} }}" if options else ""
