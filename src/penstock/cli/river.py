"""`penstock river`: schemas of services, and clients made from them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import LocalError

app = typer.Typer(help="Schemas of services in River's form, and clients made from them: schema, codegen.")


@app.command()
def schema(
    service: Annotated[str, typer.Argument(help="MODULE:NAME or FILE.py:NAME of a penstock.Service.")],
) -> None:
    """Print the schema of a service as JSON, in the form that River's reference exports.

    River has no way to ask a server for its schema: it needs the service itself.

    Example: penstock river schema quotes.py:service > schema.json
    """
    import json

    from .serve import load_service

    if "://" in service:
        raise LocalError(
            f"no server can be asked for its schema, so not {service}; name the service, as in quotes.py:service"
        )
    print(json.dumps(load_service(service).schema(), indent=2))


@app.command()
def codegen(
    schema: Annotated[str, typer.Argument(help="The schema: a file, or - for standard input.")],
    output: Annotated[str | None, typer.Option("--output", "-o", help="A file; else standard output.")] = None,
) -> None:
    """Write a typed Python client for the services of a schema, also of one that River's reference exported.

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
        raise LocalError(f"there is no file {name!r}; the verb schema writes one")
    return path.read_bytes()
