"""`penstock river`: exports schemas of services, and generates clients from them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from ..errors import LocalError
from .arguments import read_bytes

app = typer.Typer(help="Export schemas of services in River's format, and generate clients from them: schema, codegen.")


@app.command()
def schema(
    service: Annotated[str, Argument(help="MODULE:NAME or FILE.py:NAME of a penstock.Service.")],
) -> None:
    """Print the schema of a service as JSON, in the format that River's reference exports.

    River has no message that asks a server for its schema, so the argument is the service itself.

    Example: penstock river schema quotes.py:service > schema.json
    """
    import json

    from .serve import load_service

    if "://" in service:
        raise LocalError(
            f"a server cannot be asked for its schema; instead of {service}, name the service, as in quotes.py:service"
        )
    print(json.dumps(load_service(service).schema(), indent=2))


@app.command()
def codegen(
    schema: Annotated[str, Argument(help="The schema: a file, or - for standard input.")],
    output: Annotated[str | None, Option("--output", "-o", help="A file; standard output by default.")] = None,
) -> None:
    """Generate a typed Python client from a schema, which may be one exported by River's reference.

    Example: penstock river codegen schema.json -o client.py
    """
    from ..schema.codegen import client_source, read_schema

    source = client_source(read_schema(read_bytes(schema if schema == "-" else f"@{schema}")))
    if output is None:
        print(source, end="")
    else:
        Path(output).write_text(source, encoding="utf-8")
