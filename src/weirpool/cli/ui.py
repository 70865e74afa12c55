"""`weirpool ui`: a page to try a server."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer import Option

from ..protocols import spec_of
from ..urls import parse_url
from .arguments import Url
from .connect_options import SessionOptions
from .console import say
from .groups import grouped
from .reflecting import connecting, request_metadata
from .repeated import address_of, repeated

if TYPE_CHECKING:
    from ..tryit.conversation import Place

__all__ = ["ui"]

JSON: Final = "application/json"
"""The data that forms make, unless the options say otherwise."""
MAX_PORT: Final = 65_535


@grouped
def ui(
    context: typer.Context,
    url: Url,
    options: SessionOptions,
    auth: Annotated[
        str | None,
        Option("--auth", metavar="AUTH", envvar="WEIRPOOL_AUTH", help="Credentials; see call.", show_default=False),
    ] = None,
    port: Annotated[int, Option("--port", min=0, max=MAX_PORT, help="The page's port; 0: any.")] = 0,
    no_open: Annotated[bool, Option("--no-open", help="Only print the page's URL.")] = False,
) -> None:
    """Open a page in the browser to try a server: forms for its requests, live streams with credit.

    The page is served to this machine only, until Ctrl-C or SIGTERM. The server need not describe itself, but its
    forms are made from its description: weirpool serve --reflection.

    Example: weirpool ui rsocket+tcp://localhost:7878

    Example: weirpool ui rsocket+wss://example.org --auth bearer:@token.txt --no-open --port 8080
    """
    from ..aio.loop import run

    place = _place(url, options, address_of(context, url), repeated(context, options, auth, skip=["saved_context"]))
    run(_serve(url, options, auth, place, port, open_browser=not no_open))


async def _serve(
    url: str, options: SessionOptions, auth: str | None, place: Place, port: int, *, open_browser: bool
) -> None:
    from ..aio.signals import stop_signal
    from ..tryit.door import open_door
    from ..tryit.target import Target

    connect = partial(connecting, url, options, data_mime=JSON if _chooses(url) else None)
    target = Target(lambda hook: connect(hook=hook), request_metadata(url, options, auth))
    async with stop_signal() as stopped, open_door(target, place, port) as page:
        task = asyncio.create_task(target.run())
        try:
            say(f"page on {page}")
            if open_browser:
                await asyncio.to_thread(_open, page)
            either: list[asyncio.Future[Any]] = [task, stopped]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def _open(page: str) -> None:
    import webbrowser

    if sys.platform == "linux" and not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")):
        # A browser for terminals would take this one. The URL is on it.
        return
    with suppress(webbrowser.Error):
        webbrowser.open(page)


def _chooses(url: str) -> bool:
    """Return True if the client chooses the MIME type of data."""
    return "data_mime" in spec_of(parse_url(url).protocol).supports


def _place(url: str, options: SessionOptions, address: str, words: list[str]) -> Place:
    """Return how commands, with these words, and programs reach the server."""
    from ..tryit.conversation import Place

    settings: dict[str, Any] = {}
    if _chooses(url):
        settings["data_mime"] = options.data_mime or JSON
        words = words if options.data_mime else [*words, "--data-mime", JSON]
    return Place(url, address, tuple(words), settings)
