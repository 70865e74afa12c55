"""`weirpool replay`: serves a recording, or sends its items."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from typer import Argument, Option

from ..access.listening import server_tls
from ..errors import LocalError
from ..protocols import EXAMPLE_URL
from ..texts import concealed, counted
from .bodies import bodies_of
from .connect_options import ConnectOptions
from .connection import print_items, with_peer
from .console import note, say
from .contexts import offered, resolved
from .entrance import AllowAnonymous, entrance
from .groups import grouped
from .output import OutputOptions
from .values import offering

if TYPE_CHECKING:
    from ..aio.peer import Peer
    from ..aio.setup import Acceptor
    from ..payload import Payload
    from ..recording.format import Event
    from ..recording.replaying import Interaction, Recording

__all__ = ["listen_until_stopped", "replay", "speed_of"]

KINDS: Final = ("upload", "channel")


@dataclass(frozen=True, kw_only=True)
class ReplayOptions:
    """Where to replay, and how fast."""

    __repr__ = concealed

    listen: Annotated[
        list[str], Option("--listen", metavar="URL", help=f"Serve at this URL; repeatable; {EXAMPLE_URL} by default.")
    ] = field(default_factory=list)
    to: Annotated[
        str | None,
        Option(
            "--to",
            metavar="URL",
            help="Send recorded items to this server instead, or to @NAME of a saved context.",
            callback=resolved,
            is_eager=True,
            autocompletion=offered,
        ),
    ] = None
    speed: Annotated[
        str, Option("--speed", metavar="FACTOR", help="How much faster than recorded, or max for no pauses.")
    ] = "1"
    loop: Annotated[bool, Option("--loop", help="Begin streams again when they end.")] = False
    kind: Annotated[str, Option("--kind", help="With --to: upload or channel.", autocompletion=offering(*KINDS))] = (
        "channel"
    )
    stream: Annotated[
        int | None, Option("--stream", metavar="N", min=1, help="With --to: the number of the interaction in the file.")
    ] = None
    auth: Annotated[
        str | None,
        Option(
            "--auth",
            metavar="AUTH",
            help="With --listen: credentials that clients must show; see call.",
            show_default=False,
        ),
    ] = None
    allow_anonymous: AllowAnonymous = False


@grouped
def replay(
    file: Annotated[Path, Argument(help="A recording of weirpool record.")],
    options: ReplayOptions,
    output: OutputOptions,
    connecting: ConnectOptions,
    route: Annotated[str | None, Argument(help="With --to: the name of a handler.")] = None,
) -> None:
    """Serve a recording with its original timing; or send the items of a recorded stream to a server.

    Items wait for clients that are slower than the recording. None is lost.

    Example: weirpool replay quotes.jsonl --listen rsocket+tcp://localhost:7878 --speed 10

    Example: weirpool replay quotes.jsonl --to rsocket+tcp://localhost:7878 ingest --kind upload --speed max
    """
    from ..recording.replaying import Recording

    speed = speed_of(options.speed)
    recording = Recording.read(file)
    if options.to is None:
        if route is not None:
            raise LocalError("a ROUTE needs --to URL: the server that recorded items are sent to")
        _serve(recording, options, connecting, speed)
        return
    if route is None or options.listen:
        raise LocalError("--to needs a ROUTE, and no --listen")
    _send(recording, options, output, connecting, route, speed)


def speed_of(text: str) -> float:
    """Return the speed for the value of --speed."""
    if text == "max":
        return inf
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0 < speed < inf:
        raise LocalError(f"--speed {text!r} is not a positive number, or max")
    return speed


def _serve(recording: Recording, options: ReplayOptions, connecting: ConnectOptions, speed: float) -> None:
    from ..aio.loop import run
    from ..recording.replaying import Replay

    note(f"{counted(len(recording.interactions), 'interaction')} of {recording.url}")
    made = Replay(recording, speed, options.loop)
    urls = server_tls(options.listen or [EXAMPLE_URL], connecting.cafile, connecting.cert, connecting.key)
    run(listen_until_stopped(made.service, urls, entrance(urls, options.auth, options.allow_anonymous)))


async def listen_until_stopped(service: Any, urls: list[str], acceptor: Acceptor | None = None) -> None:
    """Serve at `urls`, to clients that the acceptor admits, until a signal arrives."""
    from ..aio.server import serve
    from ..aio.signals import stop_signal

    async with stop_signal() as stopped, serve(service, *urls, acceptor=acceptor) as server:
        for url in server.urls:
            say(f"listening on {url}")
        await stopped


def _send(
    recording: Recording,
    options: ReplayOptions,
    output: OutputOptions,
    connecting: ConnectOptions,
    route: str,
    speed: float,
) -> None:
    assert options.to is not None
    if options.kind not in KINDS:
        raise LocalError(f"--kind {options.kind!r} is not upload or channel")
    chosen = _chosen(recording, options.stream)
    printer = output.printer(options.to)
    source = bodies_of(options.to).items(_items(recording, chosen, speed, options.loop))

    async def use(peer: Peer) -> None:
        if options.kind == "upload":
            printer.item(await peer.upload(route, b"", source))
        else:
            await print_items(peer.channel(route, b"", source), printer, None)

    with_peer(options.to, use, connecting)


def _chosen(recording: Recording, number: int | None) -> Interaction:
    """Return the interaction with a number, or the first one with items."""
    for each in recording.interactions:
        if each.number == number or (number is None and each.sent + each.items):
            return each
    wanted = "an interaction with items" if number is None else f"an interaction {number}"
    raise LocalError(f"{str(recording.path)!r} does not have {wanted}")


async def _items(recording: Recording, chosen: Interaction, speed: float, loop: bool) -> AsyncIterator[Payload]:
    """Yield the items that the client has sent; if there are none, those of the server."""
    from ..recording.replaying import paced_events

    wanted = "sent" if chosen.sent else "item"
    while True:
        async for event in paced_events(_only(recording.events(chosen), wanted), speed):
            yield event.payload
        # Without items, a loop would never rest.
        if not loop or not chosen.sent + chosen.items:
            return


def _only(events: Iterator[Event], wanted: str) -> Iterator[Event]:
    return (event for event in events if event.event == wanted)
