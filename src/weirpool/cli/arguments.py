"""Arguments and options shared by several verbs."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from .contexts import offered, resolved
from .routes import offered_routes

__all__ = ["Credit", "Route", "Url"]

Url = Annotated[
    str,
    Argument(
        help="PROTOCOL+TRANSPORT://HOST:PORT: rsocket+tcp://localhost:7878; or @NAME of a saved context, which may be "
        "left out if it is the current one.",
        callback=resolved,
        is_eager=True,
        autocompletion=offered,
    ),
]
Route = Annotated[str, Argument(help="The name of a handler.", autocompletion=offered_routes)]
Credit = Annotated[int | None, Option("--credit", metavar="N", min=1, help="Maximum items in flight.")]
