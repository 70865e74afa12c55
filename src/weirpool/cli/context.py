"""`weirpool context`: saves URLs and credentials of servers, and chooses the one to talk to."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer import Argument, Option

from ..errors import LocalError
from ..texts import shown_line
from ..urls import parse_url
from .confirm import Yes, confirm
from .connect_options import SessionOptions
from .console import say, say_json
from .contexts import Contexts, Saved, check_name, load, offered_names, save
from .credentials import check_form
from .groups import grouped
from .repeated import is_given, without_secret
from .request_options import Auth

app = typer.Typer(
    help="Save servers with their credentials, and choose the one that other verbs talk to.\n\n"
    "Example: weirpool context add dev rsocket+tcp://localhost:7878"
)

UNSAVED: Final = frozenset({"name", "server", "saved_context"})

Name = Annotated[str, Argument(help="The name of a context.", autocompletion=offered_names)]
AsJson = Annotated[bool, Option("--json", help="Print JSON.")]


@app.command("add")
@grouped
def add(
    context: typer.Context,
    name: Annotated[str, Argument(help="A name for the context.")],
    server: Annotated[str, Argument(metavar="URL", help="The URL of the server.")],
    options: SessionOptions,
    auth: Auth = None,
) -> None:
    """Save a server, or change a saved one. The first one becomes the current one.

    The file is readable by its owner only. With --auth bearer:env:TOKEN or @FILE, it does not contain the secret.

    Example: weirpool context add prod rsocket+tls://quotes.example:7878 --auth bearer:env:QUOTES_TOKEN
    """
    check_name(name)
    parse_url(server)
    options.settings(server)
    for name_of, text in (("auth", auth), ("setup_auth", options.setup_auth)):
        if text is not None and is_given(context, name_of):
            check_form(text)
    given = {
        str(each.name): context.params[str(each.name)]
        for each in context.command.params
        if is_given(context, str(each.name))
    }
    saved = Saved(server, {key: value for key, value in given.items() if key not in UNSAVED})
    contexts = load()
    contexts.contexts[name] = saved
    contexts.current = contexts.current or name
    save(contexts)
    say(f"{name}: {server}{' (current)' if contexts.current == name else ''}")


@app.command("use")
def use(
    name: Annotated[str, Argument(help="The name of a context; - for none.", autocompletion=offered_names)],
) -> None:
    """Choose the context of verbs that are given no URL.

    Example: weirpool context use prod
    """
    contexts = load()
    contexts.current = "" if name == "-" else name
    say(f"{name}: {contexts.find(name).url}" if contexts.current else "there is no current context now")
    save(contexts)


@app.command("ls")
def ls(as_json: AsJson = False) -> None:
    """List all contexts.

    Example: weirpool context ls
    """
    contexts = load()
    if as_json:
        say_json({name: _shown(contexts, name) for name in sorted(contexts.contexts)})
        return
    if not contexts.contexts:
        say("there are no contexts; add one with `weirpool context add NAME URL`")
        return
    table = Table("", "name", "URL", "options", box=None, pad_edge=False)
    for name in sorted(contexts.contexts):
        fields = _shown(contexts, name)
        options = " ".join(f"--{key.replace('_', '-')}" for key in fields["options"])
        cells = (shown_line(text) for text in (name, fields["url"], options))
        table.add_row("*" if fields["current"] else "", *map(Text, cells))
    Console().print(table)


@app.command("show")
def show(
    name: Annotated[
        str | None, Argument(help="A context; by default the current one.", autocompletion=offered_names)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a context, without its secrets.

    Example: weirpool context show prod
    """
    contexts = load()
    if name is None and not contexts.current:
        raise LocalError("there is no current context; choose one with `weirpool context use NAME`")
    fields = _shown(contexts, name or contexts.current)
    if as_json:
        say_json(fields)
        return
    say(f"{name or contexts.current}: {fields['url']}{' (current)' if fields['current'] else ''}")
    for key, value in fields["options"].items():
        for each in value if isinstance(value, list) else [value]:
            say(f"  --{key.replace('_', '-')}{'' if each is True else f' {each}'}")


@app.command("rm")
def remove(name: Name, yes: Yes = False) -> None:
    """Remove a context. On a terminal it asks first.

    Example: weirpool context rm prod
    """
    contexts = load()
    confirm(f"Remove the context {name}, {shown_line(contexts.find(name).url)}?", yes)
    del contexts.contexts[name]
    if contexts.current == name:
        contexts.current = ""
    save(contexts)


def _shown(contexts: Contexts, name: str) -> dict[str, Any]:
    """Return a context as it is printed."""
    saved = contexts.find(name)
    options = {key: without_secret(key, value) for key, value in saved.options.items()}
    return {"url": saved.url, "current": contexts.current == name, "options": options}
