"""`weirpool rules`: checks which rules of Reactive Streams a server keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import typer
from typer import Option

from ..errors import LocalError
from ..payload import Payload
from .arguments import Url
from .bodies import bodies_of
from .console import say, say_json
from .exits import FAILED
from .groups import grouped
from .trust import client_tls
from .values import duration, read_bytes

if TYPE_CHECKING:
    from ..testing import Published, Result

__all__ = ["rules"]

PATIENCE: Final = 5.0
SETTLE: Final = 0.25
STREAMS: Final = 1_000
_HELP: Final = "ROUTE or ROUTE=DATA, with the DATA of the request as in --data of `weirpool stream`"


@dataclass(frozen=True, kw_only=True)
class RuleOptions:
    """The streams of the server, what to check, and TLS."""

    finite: Annotated[str, Option("--finite", metavar="STREAM", help=f"A stream of --count items: {_HELP}.")]
    count: Annotated[int, Option("--count", metavar="N", min=4, help="The number of items of --finite.")]
    failing: Annotated[
        str | None, Option("--failing", metavar="STREAM", help="A stream that fails after fewer items.")
    ] = None
    endless: Annotated[
        str | None, Option("--endless", metavar="STREAM", help="A stream that sends items as long as requested.")
    ] = None
    empty: Annotated[
        str | None, Option("--empty", metavar="STREAM", help="A stream that completes without an item.")
    ] = None
    rule: Annotated[list[str] | None, Option("--rule", metavar="NUMBER", help="Only this rule; repeatable.")] = None
    streams: Annotated[
        int, Option("--streams", metavar="N", min=1, help="Streams that the server allows on one connection.")
    ] = STREAMS
    patience: Annotated[
        float,
        Option("--patience", metavar="SECONDS", parser=duration(0.01), help="Time to wait for an expected event."),
    ] = PATIENCE
    settle: Annotated[
        float,
        Option(
            "--settle", metavar="SECONDS", parser=duration(), help="Silence after which a stream counts as stopped."
        ),
    ] = SETTLE
    as_json: Annotated[bool, Option("--json", help="Print results as JSON, one object per line.")] = False
    cafile: Annotated[
        str | None, Option("--cafile", metavar="FILE", help="With TLS: trust the certificates in this file.")
    ] = None
    insecure: Annotated[bool, Option("--insecure", help="With TLS: trust any certificate; only for tests.")] = False
    cert: Annotated[str | None, Option("--cert", metavar="FILE", help="With TLS: the client certificate.")] = None
    key: Annotated[str | None, Option("--key", metavar="FILE", help="Its key, if in a separate file.")] = None

    def published(self, url: str) -> Published:
        """Return the streams of the server at `url`."""
        from ..testing import Published

        address, context = client_tls(url, self.cafile, self.insecure, self.cert, self.key)
        failing, endless, empty = (
            None if text is None else _stream(url, text) for text in (self.failing, self.endless, self.empty)
        )
        return Published(
            url=address,
            finite=_stream(url, self.finite),
            count=self.count,
            failing=failing,
            endless=endless,
            empty=empty,
            streams=self.streams,
            patience=self.patience,
            settle=self.settle,
            ssl=context,
        )


@grouped
def rules(url: Url, options: RuleOptions) -> None:
    """Check which rules of Reactive Streams the streams of a server keep; exit with 1 if one is broken.

    The server gets unusual requests on many short connections: use one for tests.

    Example: weirpool rules rsocket+tcp://localhost:7878 --finite range=6 --count 6 --endless ticks
    """
    from ..aio.loop import run
    from ..testing import check_publisher, misdescribed

    published = options.published(url)
    numbers = _numbers(options.rule)
    fault = run(misdescribed(published))
    if fault:
        raise LocalError(f"{fault}; mend the options that describe the server's streams")
    broken = False
    for number in numbers:
        [result] = run(check_publisher(published, [number]))
        broken = broken or result.outcome == "broken"
        if options.as_json:
            say_json(_fields(result))
        else:
            say(str(result))
    if broken:
        raise typer.Exit(FAILED)


def _numbers(chosen: list[str] | None) -> list[str]:
    """Return the numbers of the rules to check. Raises LocalError if one is not a rule of publishers."""
    from ..testing import PUBLISHER_RULES

    for number in chosen or ():
        if number not in PUBLISHER_RULES:
            raise LocalError(f"--rule {number} is not a rule of publishers; use one of {', '.join(PUBLISHER_RULES)}")
    return list(chosen or PUBLISHER_RULES)


def _stream(url: str, text: str) -> tuple[str, bytes]:
    """Return the route and the request's data of ROUTE or ROUTE=DATA."""
    route, _, data = text.partition("=")
    return route, bodies_of(url).outgoing(Payload(read_bytes(data))).data


def _fields(result: Result) -> dict[str, str]:
    return {"rule": result.rule.number, "outcome": result.outcome, "text": result.rule.text, "why": result.why}
