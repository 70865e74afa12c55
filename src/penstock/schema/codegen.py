"""Generates a typed Python client from the exported schema of a service."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ..errors import LocalError, Mismatch
from .converter import Converter
from .formats import JSON
from .named import RESERVED
from .naming import Names, camel, docstring, literal
from .shapes import Shapes, call, listed

__all__ = ["client_source", "read_schema"]

TITLE: Final = '"""Typed clients. Made by `penstock river codegen`: make it anew instead of changing it."""'
IMPORTS: Final[tuple[dict[str, tuple[str, ...]], ...]] = (
    {"collections.abc": ("AsyncIterable", "Iterable"), "typing": ("Any", "Literal", "TypeAlias", "Union")},
    {"msgspec": ("msgspec",), "penstock": ("Peer", "TypedError", "TypedStream", "typed")},
)
"""What generated code may import: from the standard library, and from other packages."""

RETURNED: Final = {"rpc": "call", "upload": "upload", "subscription": "stream", "stream": "channel"}
"""The method of a peer for each of River's types of procedures."""


class _Procedure(msgspec.Struct):
    type: str
    init: Any = msgspec.field(default_factory=dict)
    output: Any = msgspec.field(default_factory=dict)
    input: Any = msgspec.field(default_factory=dict)
    errors: Any = msgspec.field(default_factory=dict)
    description: str = ""


class _Service(msgspec.Struct):
    procedures: dict[str, _Procedure]
    description: str = ""


class _Export(msgspec.Struct):
    services: dict[str, _Service]


_EXPORT: Final = Converter(_Export)


def read_schema(data: bytes) -> _Export:
    """Return an exported schema, as written by `Service.schema` or by `serializeSchema` of River's reference.

    Raises:
        LocalError: `data` is not such a schema.

    """
    try:
        export: _Export = _EXPORT.decode(JSON, data)
    except Mismatch as error:
        raise LocalError(f"this is no exported schema of a service: {error}") from None
    for service, each in export.services.items():
        for name, procedure in each.procedures.items():
            if procedure.type not in RETURNED:
                known = ", ".join(RETURNED)
                raise LocalError(f"{service}.{name} is of type {procedure.type!r}; known are {known}")
    return export


def client_source(export: _Export) -> str:
    """Return the source of a module with a class for each service and a struct for each type.

    The same schema gives the same source, formatted and fully typed. Text from a schema is only used as a name, a
    literal or a docstring.
    """
    names = Names()
    shapes = Shapes(names)
    classes = {service: names.give(camel(service), "Service") for service in sorted(export.services)}
    services = [_Client(name, service, export.services[service], names, shapes) for service, name in classes.items()]
    clients = [client.render() for client in services]
    errors = [block for client in services for block in client.errors]
    blocks = [*shapes.render(), *errors, *clients]
    body = "\n\n\n".join("\n".join(block) for block in blocks)
    return f"{_head(body, sorted(classes.values()))}\n\n\n{body}\n"


def _head(body: str, classes: list[str]) -> str:
    """Return the start of the module: the imports that `body` needs, and `__all__`."""
    used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
    blocks = [[TITLE], ["from __future__ import annotations"]]
    for modules in IMPORTS:
        lines = []
        for module, known in modules.items():
            names = [name for name in known if name in used]
            if names:
                lines.append(f"import {module}" if names == [module] else f"from {module} import {', '.join(names)}")
        blocks += [lines] if lines else []
    blocks.append(listed("__all__ = ", [literal(name) for name in classes], "", "", "[]"))
    return "\n\n".join("\n".join(block) for block in blocks)


class _Client:
    """The class of one service.

    Args:
        name: The name of the class.
        service: The name of the service.
        described: The description of the service.
        names: The module's names.
        shapes: Declares the types.

    Attributes:
        errors: The classes of its errors, each as lines.

    """

    def __init__(self, name: str, service: str, described: _Service, names: Names, shapes: Shapes) -> None:
        self.errors: list[list[str]] = []
        self._name = name
        self._service = service
        self._described = described
        self._names = names
        self._shapes = shapes
        self._methods = [self._method(key, described.procedures[key]) for key in sorted(described.procedures)]

    def render(self) -> list[str]:
        """Return the lines of the class; all types must have been declared."""
        told = docstring(self._described.description or f"Asks the service {self._service} for things.", "    ")
        lines = [f"class {self._name}:", *told, "", "    def __init__(self, peer: Peer) -> None:"]
        lines.append("        self._peer = typed(peer)")
        names = Names(self._names)
        for method in self._methods:
            lines += ["", *method.render(names.give(method.name, "procedure"))]
        return lines

    def _method(self, name: str, procedure: _Procedure) -> _Method:
        words = (self._service, name)
        init = self._shapes.type_of(procedure.init, *words, "Init")
        input_ = ""
        if procedure.type in ("upload", "stream"):
            input_ = self._shapes.type_of(procedure.input, *words, "Input")
        output = self._shapes.type_of(procedure.output, *words, "Output")
        errors = [self._error(words, error) for error in _errors(procedure.errors)]
        bare = self._shapes.has_defaults(init)
        return _Method(name, f"{self._service}.{name}", procedure, (init, input_, output), errors, bare)

    def _error(self, words: tuple[str, str], schema: Mapping[str, Any]) -> str:
        """Declare an error, and return the name of its class."""
        code = schema["properties"]["code"]["const"]
        word = code.lower() if code.isupper() else code
        name = self._names.give(camel(*words, word), "Error")
        told = schema.get("description")
        lines = call(f"class {name}", ["TypedError", f"code={literal(code)}"], ":", "")
        lines += docstring(told, "    ") if isinstance(told, str) else []
        extras = schema["properties"].get("extras")
        if extras is not None:
            lines += [""] if len(lines) > 1 else []
            needed = "extras" in (schema.get("required") or [])
            wanted = self._shapes.type_of(extras, *words, word, "Extras")
            lines.append(f"    extras: {wanted}" + ("" if needed or wanted in ("Any", "None") else " | None"))
        self.errors.append([*lines, "    pass"] if len(lines) == 1 else lines)
        return name


class _Method:
    """The method of one procedure, with the types of its init, input and output."""

    def __init__(
        self,
        name: str,
        route: str,
        procedure: _Procedure,
        types: tuple[str, str, str],
        errors: list[str],
        bare: bool,
    ) -> None:
        self.name = name
        self._route = route
        self._procedure = procedure
        self._types = types
        self._errors = errors
        self._bare = bare

    def render(self, name: str) -> list[str]:
        """Return the lines of the method."""
        init, input_, output = self._types
        verb = RETURNED[self._procedure.type]
        arguments, given = ["self"], [literal(self._route)]
        arguments.append(f"init: {init}" + (" | None = None" if self._bare and not input_ else ""))
        given.append(f"{init}() if init is None else init" if self._bare and not input_ else "init")
        if input_:
            arguments.append(f"items: Iterable[{input_}] | AsyncIterable[{input_}]")
            given.append("items")
        given.append(f"returns={output}")
        if self._errors:
            given.append(f"errors=[{', '.join(self._errors)}]")
        single = verb in ("call", "upload")
        returned = output if single else f"TypedStream[{output}]"
        head = call(f"    {'async ' * single}def {name}", arguments, f" -> {returned}:", "    ")
        told = docstring(self._procedure.description or f"Ask for {self._route}.", "        ")
        asked = f"self._peer.{verb}"
        if not single:
            return [*head, *told, *call(f"        return {asked}", given, "", "        ")]
        # A type checker cannot infer this, for example for a union.
        return [*head, *told, *call(f"        answer: {output} = await {asked}", given, "", "        "), SAID]


SAID: Final = "        return answer"


def _errors(schema: Any, levels: int = 8) -> list[Mapping[str, Any]]:
    """Return the procedure's own errors, each identified by a constant code."""
    if not isinstance(schema, Mapping) or not levels:
        return []
    found = [error for each in schema.get("anyOf") or [] for error in _errors(each, levels - 1)]
    properties = schema.get("properties")
    code = properties.get("code") if isinstance(properties, Mapping) else None
    word = code.get("const") if isinstance(code, Mapping) else None
    return [*found, schema] if isinstance(word, str) and word and word not in RESERVED else found
