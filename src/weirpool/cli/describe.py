"""`weirpool describe`: what a server offers."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer
from typer import Argument, Option

from ..errors import LocalError
from ..kinds import KIND_NAMES
from ..texts import counted, shown, shown_line
from .arguments import Url
from .connect_options import ConnectOptions
from .console import say_json
from .groups import grouped
from .repeated import address_of, repeated
from .routes import offered_routes

if TYPE_CHECKING:
    from rich.console import Console

    from ..reflection.description import Described, Description

__all__ = ["describe"]

WIDTH = 120
"""The width of output that is not a terminal."""
UNREPEATED = ("saved_context", "debug", "show_secrets", "stats", "timeout", "retry")
"""Options that an example does not repeat."""
MAX_SHOWN: Final = 1_000
"""Routes of a table, and definitions of a route."""
MAX_PARTS: Final = 100_000
"""Types that are written in all rows."""
MAX_ABOUT: Final = 500
MAX_NEAR: Final = 100
"""Characters of a name that may have been misspelled."""


@grouped
def describe(
    context: typer.Context,
    url: Url,
    options: ConnectOptions,
    route: Annotated[
        str | None, Argument(help="Show one route: its types, errors and an example.", autocompletion=offered_routes)
    ] = None,
    auth: Annotated[
        str | None,
        Option("--auth", metavar="AUTH", envvar="WEIRPOOL_AUTH", help="Credentials; see call.", show_default=False),
    ] = None,
    json: Annotated[bool, Option("--json", help="Print the description as JSON.")] = False,
) -> None:
    """Show what a server offers: its routes, with their kinds, types and documentation.

    The server must describe itself: weirpool serve --reflection, or Settings(reflection=True).

    Example: weirpool describe rsocket+tcp://localhost:7878

    Example: weirpool describe rsocket+tcp://localhost:7878 quotes.live
    """
    from ..reflection.client import describe as ask
    from .connection import with_peer
    from .reflecting import request_metadata

    metadata = request_metadata(url, options, auth)
    found: list[Description] = []

    async def use(peer: Any) -> None:
        found.append(await ask(peer, metadata=metadata))

    with_peer(url, use, options)
    [description] = found
    chosen = description.routes if route is None else description.find(route)
    if not chosen and route is not None:
        raise LocalError(_unknown(route, description))
    if json:
        _print_json(description, None if route is None else chosen)
    elif route is None:
        _print_table(description)
    else:
        words = repeated(context, options, auth, skip=UNREPEATED)
        for each in chosen[: len(KIND_NAMES)]:
            mime = [] if options.data_mime else _mime(each)
            example = _example(address_of(context, url), each, description.definitions, [*words, *mime])
            _print_route(each, description, example)


def _unknown(route: str, description: Description) -> str:
    from difflib import get_close_matches

    known = [each.route for each in description.routes if len(each.route) <= MAX_NEAR][:MAX_SHOWN]
    near = get_close_matches(route[:MAX_NEAR], known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known[:20]) or 'none'}"
    return f"the server has no route {route!r}; {hint}"


def _print_json(description: Description, chosen: list[Described] | None) -> None:
    from ..reflection.definitions import used

    if chosen is not None:
        built = msgspec.to_builtins(chosen)
        description = msgspec.structs.replace(
            description, routes=chosen, definitions=used(built, description.definitions)
        )
    say_json(msgspec.to_builtins(description), indent=2)


def _console() -> Console:
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False, emoji=False, markup=False)


def _print_table(description: Description) -> None:
    """Print all routes, one for each row. Texts of the server are never markup."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from ..reflection.notation import signature
    from ..schema.budget import Budget

    console = _console()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("KIND", style="cyan", no_wrap=True)
    table.add_column("ROUTE AND TYPES", overflow="fold", ratio=3)
    table.add_column("ABOUT", overflow="fold", ratio=2)
    budget = Budget(MAX_PARTS, "the table")
    for each in description.routes[:MAX_SHOWN]:
        line = Text(shown_line(signature(each, description.definitions, budget=budget)))
        line.stylize("bold", 0, len(shown_line(each.route)))
        about = shown_line(each.description[:MAX_ABOUT].partition("\n\n")[0].replace("\n", " "))
        table.add_row(each.kind, line, Text(about))
    if description.software:
        console.print(Text(shown_line(description.software)), style="bold")
    with console.capture() as captured:
        console.print(table if description.routes else Text("the service has no handlers"))
    # Rich fills each row with spaces.
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
    if len(description.routes) > MAX_SHOWN:
        console.print(Text(f"and {counted(len(description.routes) - MAX_SHOWN, 'more route')}; --json prints all"))
    if not description.complete:
        console.print(Text("the description is not complete: types, texts or routes are missing"))
    elif description.routes:
        console.print(Text(f"{counted(len(description.routes), 'route')}; add a route for its types and an example"))


def _print_route(route: Described, description: Description, example: str) -> None:
    """Print everything about one route, with a command that makes a request of it."""
    from rich.text import Text

    from ..reflection.definitions import used
    from ..reflection.notation import signature

    console = _console()
    table = description.definitions
    console.print(Text(f"{route.kind} {shown_line(signature(route, table, fields=False))}", style="bold"))
    if route.description:
        console.print(Text("\n" + shown(route.description)))
    _print_types(console, used(msgspec.to_builtins(route), table))
    for error in route.errors:
        about = f": {error.description}" if error.description else ""
        console.print(Text(f"\nfails with {shown_line(error.code)}{shown_line(about)}"))
    if route.encodings:
        console.print(Text(f"\ndata: {shown_line(', '.join(route.encodings))}"))
    elif route.raw:
        console.print(Text("\ndata: bytes as they are; the handler has no types"))
    console.print(Text("\nexample:", style="dim"))
    # Not wrapped: it is there to be copied.
    console.print(Text(example), soft_wrap=True)


def _print_types(console: Console, definitions: Mapping[str, Any]) -> None:
    from rich.text import Text

    from ..reflection.notation import field_lines
    from ..schema.budget import Budget

    budget = Budget(MAX_PARTS, "the types")
    left = MAX_SHOWN
    for name, schema in definitions.items():
        lines = field_lines(schema, budget)[:left]
        left -= len(lines) + 1
        if left < 0:
            console.print(Text("\n…"))
            break
        console.print(Text(f"\n{shown_line(name)}", style="bold"))
        for line in lines:
            console.print(Text(f"  {shown_line(line)}"))


def _mime(route: Described) -> list[str]:
    """Return the options with which a route can be asked in JSON."""
    return ["--data-mime", "application/json"] if not route.raw and "application/json" in route.encodings else []


def _example(address: str, route: Described, table: Mapping[str, Any], words: list[str]) -> str:
    """Return a command that makes a request of this route, with these options, or why there is none."""
    from ..reflection.commands import as_command
    from ..reflection.examples import example

    def text(schema: dict[str, Any] | None) -> str:
        return "" if schema is None else json.dumps(example(schema, table), ensure_ascii=False)

    sends = route.kind in ("upload", "channel")
    items = [text(route.items) or "item"] * 2 if sends else []
    more = ["--take", "5"] if route.kind == "stream" else []
    try:
        return as_command(address, route.route, route.kind, text(route.request), items, [*words, *more])
    except LocalError as error:
        return f"none: {error}"
