"""`weirpool playground`: runs a service to try everything with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, Final

from typer import Argument

from ..errors import ConnectError
from ..protocols import EXAMPLE_URL, EXAMPLE_URLS, spec_of
from ..texts import shell_word
from ..urls import Url, parse_url
from .console import say
from .groups import grouped
from .places import command
from .serve import ServeOptions, run_server

if TYPE_CHECKING:
    from ..aio.service import Service
    from ..settings import Settings

__all__ = ["playground"]

TEXT_COMMANDS: Final = (
    "weirpool call {url} echo -d hello",
    "weirpool stream {url} ticker",
    "seq 10 | weirpool upload {url} sum -",
)
VALUE_COMMANDS: Final = (
    """weirpool call {url} quotes.latest -d '{{"symbol": "ACME"}}'""",
    """weirpool stream {url} quotes.live -d '{{"rate": 10}}'""",
    """echo '{{"symbol": "ACME", "count": 5}}' | weirpool upload {url} orders.load -""",
)
"""For protocols that carry values instead of text."""
ALL_ADDRESSES: Final = ("", "0.0.0.0", "::")


@grouped
def playground(
    options: ServeOptions,
    urls: Annotated[list[str] | None, Argument(help="URLs to listen on; by default three on this machine.")] = None,
) -> None:
    """Serve a service to try Weirpool with, until it is stopped by Ctrl-C or SIGTERM.

    It prints its routes, and commands to try in another terminal. The options are those of `weirpool serve`.

    Example: weirpool playground

    Example: weirpool playground rsocket+ws://127.0.0.1:8080 --debug
    """
    from ..playground.service import service

    settings = _settings(options)
    try:
        run_server(lambda: service, urls or _addresses(), options, settings, lambda shown: _announce(service, shown))
    except ConnectError as error:
        if urls:
            raise
        free = parse_url(EXAMPLE_URL).with_port(0)
        raise ConnectError(f"{error}: weirpool playground {free}") from None


def _settings(options: ServeOptions) -> Settings:
    """Return the settings of the options; the playground tells clients about its routes."""
    settings = options.settings()
    # Reflection is on here, and off for services of yours unless they ask for it.
    told: dict[str, Any] = {field.name: True for field in fields(settings) if field.name == "reflection"}
    return replace(settings, **told)


def _addresses() -> list[str]:
    """Return the URLs of a playground without arguments, without those whose packages are missing."""
    is_there = {"ws": find_spec("websockets") is not None}
    return [url for url in EXAMPLE_URLS if is_there.get(parse_url(url).transport, True)]


def _announce(service: Service, shown: Sequence[str]) -> None:
    say("")
    say("routes:")
    for kind, route in service.routes():
        handler = service.find(kind, route)
        say(f"  {kind.name.lower():8} {route:14} {handler.types.description if handler else ''}".rstrip())
    say("")
    say("in another terminal:")
    for each in _commands([parse_url(url) for url in shown]):
        say(f"  {each.replace('weirpool ', f'{command()} ')}")
    say("")
    say("Ctrl-C stops it")


def _commands(urls: Sequence[Url]) -> list[str]:
    """Return commands to try: all for the first URL, and one for the first of another form of data."""
    first, *others = urls
    found = [each.format(url=_reachable(first)) for each in _fitting(first)]
    another = next((url for url in others if _fitting(url) is not _fitting(first)), None)
    return found if another is None else [*found, _fitting(another)[0].format(url=_reachable(another))]


def _reachable(url: Url) -> str:
    """Return the URL for a client on this machine, quoted for a shell."""
    # A server on all addresses has no name of its own.
    return shell_word(str(replace(url, host="localhost") if url.host in ALL_ADDRESSES else url))


def _fitting(url: Url) -> tuple[str, ...]:
    return VALUE_COMMANDS if spec_of(url.protocol).data_mime else TEXT_COMMANDS
