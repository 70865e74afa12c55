"""`penstock river`: exports schemas of services, and generates clients from them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import LocalError

app = typer.Typer(help="Export schemas of services in River's format, and generate clients from them: schema, codegen.")


@app.command()
def schema(
    service: Annotated[str, typer.Argument(help="MODULE:NAME or FILE.py:NAME of a penstock.Service.")],
) -> None:
    """Print the schema of a service as JSON, in the format that River's reference exports.

    River has no message that asks a server for its schema, so the argument is the service itself.

    Example: penstock river schema quotes.py:service > schema.json
    """
    import json

    from .serve import load_service

    if "://" in service:
        raise LocalError(f"River cannot ask {service} for its schema; give the service itself, as in quotes.py:service")
    print(json.dumps(load_service(service).schema(), indent=2))


@app.command()
def codegen(
    schema: Annotated[str, typer.Argument(help="The schema: a file, or - for standard input.")],
    output: Annotated[str | None, typer.Option("--output", "-o", help="A file; standard output by default.")] = None,
) -> None:
    """Generate a typed Python client from a schema, which may be one exported by River's reference.

    Example: penstock river codegen schema.json -o client.py
    """
    from ..schema.codegen import client_source, read_schema

    source = client_source(read_schema(_read(schema)))
    if output is None:
        print(source, end="")
    else:
        Path(output).write_text(source, encoding="utf-8")


def _read(name: str) -> bytes:
    """Return the content of a file, or of standard input."""
    if name == "-":
        import sys

        return sys.stdin.buffer.read()
    path = Path(name)
    if not path.is_file():
        raise LocalError(f"there is no file {name!r}; penstock river schema creates one")
    return path.read_bytes()
