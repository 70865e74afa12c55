"""`penstock codegen`: generates typed clients from services and schemas."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from typer import Argument, BadParameter, Option

from ..errors import LocalError
from .connect_options import SessionOptions
from .console import complain
from .contexts import resolved
from .groups import grouped
from .schemas import read_source
from .values import offering

if TYPE_CHECKING:
    from ..schema.shapes import Loss

__all__ = ["codegen"]

LIBRARIES: Final = ("rsocket", "river", "river-1.1")
MAX_SHOWN: Final = 20
"""Losses to print; the generated file lists all."""


Source = Annotated[
    str,
    Argument(
        help="A server's URL or @NAME of a saved context, MODULE:NAME or FILE.py:NAME of a penstock.Service, a "
        "schema's FILE, or - for standard input.",
        callback=resolved,
        is_eager=True,
    ),
]


@grouped
def codegen(
    source: Source,
    options: SessionOptions,
    python: Annotated[bool, Option("--py", help="Generate Python; the default.")] = False,
    typescript: Annotated[
        str | None,
        Option(
            "--ts",
            metavar="LIBRARY",
            help="TypeScript for rsocket (rsocket-js 1.0), river (@replit/river) or river-1.1 (its versions to 0.17).",
            autocompletion=offering(*LIBRARIES),
        ),
    ] = None,
    output: Annotated[str | None, Option("--output", "-o", help="A file; standard output by default.")] = None,
    strict: Annotated[
        bool, Option("--strict", help="Fail if a part of the schema becomes Any, or is omitted.")
    ] = False,
) -> None:
    """Generate a typed client from a service or its schema, which may be one exported by River's reference.

    Example: penstock codegen quotes.py:service -o quotes_client.py

    Example: penstock codegen quotes.py:service --ts rsocket -o quotes.ts

    Example: penstock codegen rsocket+ws://localhost:7878 --ts rsocket -o quotes.ts
    """
    from ..schema.codegen import generate_python
    from ..schema.typescript import generate_typescript

    if typescript is not None and (python or typescript not in LIBRARIES):
        raise BadParameter(f"--ts takes {' or '.join(LIBRARIES)}, and excludes --py")
    losses: list[Loss] = []
    schema = read_source(source, options)
    if typescript is None:
        text = generate_python(schema, losses)
    else:
        text = generate_typescript(schema, typescript, losses)
    if strict and losses:
        first = f"{losses[0].place}: {losses[0].reason}"
        raise LocalError(f"--strict: {len(losses)} parts of the schema are lost; the first is {first}")
    _report("Any" if typescript is None else "unknown, or omitted", losses)
    if output is None:
        sys.stdout.write(text)
    else:
        try:
            Path(output).write_text(text, encoding="utf-8")
        except OSError as error:
            raise LocalError(f"cannot write {output!r}: {error.strerror}") from error


def _report(lost: str, losses: list[Loss]) -> None:
    """Print what a generated client does not have, and what it has instead."""
    for loss in losses[:MAX_SHOWN]:
        complain(f"{lost}: {loss.place}: {loss.reason}")
    if len(losses) > MAX_SHOWN:
        complain(f"{lost}: {len(losses) - MAX_SHOWN} more, which the generated file lists")
