"""Generates a TypeScript module for rsocket-js 1.0: typed requests over one connection."""

from __future__ import annotations

from typing import Final

from .naming import Names
from .nodes import NONE, Node
from .procedures import Api, Client, Error, Method
from .python_types import PythonTypes
from .route_variables import filled, without_braces
from .rsocket_js_runtime import RUNTIME
from .typescript_types import RESERVED_NAMES, TypescriptTypes, jsdoc, quoted

__all__ = ["rsocket_source"]

MEMBERS: Final = RESERVED_NAMES
"""Names of methods that JavaScript calls itself."""
PARAMETERS: Final = frozenset(
    "arguments await break case catch class const continue debugger default delete do else enum eval export extends"
    " false finally for function if implements import in init instanceof interface items let new null options package"
    " private protected public return static super switch this throw true try typeof var void while with yield".split()
)
"""Names that a parameter for a variable cannot have: words of the language, and those of the other parameters."""


def rsocket_source(api: Api) -> list[list[str]]:
    """Return the blocks of a module with an interface for each type, and a class for each service and error."""
    types = TypescriptTypes("string", extended=False)
    clients = [_class(client, types) for client in api.clients]
    errors = [_error(error, types) for error in api.errors]
    if api.handshake is not None:
        types.type_of(api.handshake)
    return [*RUNTIME, *types.render(), *errors, *clients]


def _error(error: Error, types: TypescriptTypes) -> list[str]:
    extras = "undefined" if error.extras is None else types.type_of(error.extras)
    if error.extras is not None and not error.required:
        extras = f"{extras} | undefined"
    return [
        *jsdoc(error.description),
        f"export class {error.name} extends TypedError<{extras}> {{",
        f"  static readonly code = {quoted(error.code)};",
        "}",
    ]


def _class(client: Client, types: TypescriptTypes) -> list[str]:
    subject = f"the service {client.service}" if client.service else "the routes that belong to no service"
    lines = [*jsdoc(client.description or f"A client of {subject}."), f"export class {client.name} {{"]
    lines += ["  readonly #peer: Requester;", "", "  constructor(rsocket: RSocket) {"]
    lines += ["    this.#peer = new Requester(rsocket);", "  }"]
    names = Names(used=MEMBERS)
    for method in client.methods:
        lines += ["", *_method(method, names.give(without_braces(method.name), "procedure"), types)]
    return [*lines, "}"]


def _method(method: Method, name: str, types: TypescriptTypes) -> list[str]:
    optional = PythonTypes.has_defaults(method.init) and method.input is None
    variables, text = filled(method.route, Names(used=PARAMETERS), _in_template, _value)
    parameters = [f"{variable}: string | number" for variable in variables]
    given = [f"`{text}`" if variables else quoted(method.route)]
    if method.init == NONE:
        given.append("null")
    else:
        wanted = types.type_of(method.init)
        # The handler of a request of an unknown type may take none.
        default = " = {}" if optional else " = null" if wanted == "unknown" and method.input is None else ""
        parameters.append(f"init: {wanted}{default}")
        given.append("init")
    if method.input is not None:
        inner = types.type_of(method.input)
        parameters.append(f"items: Items<{inner}>")
        given.append("items")
    if method.verb != "fire":
        given.append(f"[{', '.join(error.name for error in method.errors)}]")
        parameters.append(f"options: {'Options' if method.verb in ('call', 'upload') else 'StreamOptions'} = {{}}")
        given.append("options")
    head = f"  {name}({', '.join(parameters)}): {_returned(method.verb, method.output, types)} {{"
    doc = jsdoc(method.description or f"Request {method.route}.", "  ")
    return [*doc, head, f"    return this.#peer.{method.verb}({', '.join(given)});", "  }"]


def _value(name: str) -> str:
    return f'${{String({name}).split(".").join("%2E")}}'


def _in_template(text: str) -> str:
    return quoted(text)[1:-1].replace("`", "\\`").replace("$", "\\$")


def _returned(verb: str, output: Node, types: TypescriptTypes) -> str:
    if verb == "fire":
        return "Promise<void>"
    inner = types.type_of(output)
    return f"Promise<{inner}>" if verb in ("call", "upload") else f"Subscription<{inner}>"
