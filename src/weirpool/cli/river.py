"""`weirpool river`: exports schemas of services."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Argument

from ..errors import LocalError
from .console import say_json

app = typer.Typer(help="Export schemas of services in River's format: schema.")


@app.callback()
def river() -> None:
    """Keep the name of the only command."""


@app.command()
def schema(
    service: Annotated[str, Argument(help="MODULE:NAME or FILE.py:NAME of a weirpool.Service.")],
) -> None:
    """Print the schema of a service as JSON, in the format that River's reference exports.

    River has no message that asks a server for its schema, so the argument is the service itself.

    Example: weirpool river schema quotes.py:service > schema.json
    """
    from .serve import load_service

    if "://" in service:
        raise LocalError(
            f"a server cannot be asked for its schema; instead of {service}, name the service, as in quotes.py:service"
        )
    say_json(load_service(service).schema(), indent=2)
