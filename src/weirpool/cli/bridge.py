"""`weirpool bridge`: listens with one protocol and forwards to a server of another."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final

from typer import Argument, Option

from ..errors import LocalError
from ..kinds import Kind
from ..texts import shown_json
from .connect_options import SessionOptions, of_context
from .console import LOGS, SERVING, note, start_logging
from .contexts import offered
from .groups import grouped
from .schemas import KIND_OF, procedures_of
from .serve import ServeOptions, until_stopped
from .values import offering

if TYPE_CHECKING:
    from ..bridging.counters import Counters

__all__ = ["Log", "UpstreamOptions", "bridge"]

KINDS: Final = tuple(kind.name.lower() for kind in Kind if kind is not Kind.FIRE)
Log = Annotated[str, Option("--log", help="The form of logs: text or json.", autocompletion=offering(*LOGS))]


@dataclass(frozen=True, kw_only=True)
class UpstreamOptions:
    """How to connect to the upstream. The options without `--to-` are those of the side that listens."""

    to_set: Annotated[
        list[str], Option("--to-set", metavar="NAME=VALUE", help="Upstream: a weirpool.Settings field; repeatable.")
    ] = field(default_factory=list)
    to_header: Annotated[
        list[str], Option("--to-header", metavar="'NAME: VALUE'", help="Upstream: a header; repeatable.")
    ] = field(default_factory=list)
    to_cafile: Annotated[
        str | None, Option("--to-cafile", metavar="FILE", help="Upstream: trust the certificates in this file.")
    ] = None
    to_insecure: Annotated[bool, Option("--to-insecure", help="Upstream: trust any certificate; only for tests.")] = (
        False
    )
    to_cert: Annotated[str | None, Option("--to-cert", metavar="FILE", help="Upstream: the client certificate.")] = None
    to_key: Annotated[
        str | None, Option("--to-key", metavar="FILE", help="Upstream: its key, if in a separate file.")
    ] = None
    to_setup: Annotated[
        str | None, Option("--to-setup", metavar="DATA", help="Upstream: data of the set-up, instead of the client's.")
    ] = None
    to_setup_auth: Annotated[
        str | None,
        Option("--to-setup-auth", metavar="AUTH", help="Upstream: credentials of the set-up.", show_default=False),
    ] = None

    def session(self) -> SessionOptions:
        """Return the options of a session with the upstream."""
        return SessionOptions(
            set=self.to_set,
            header=self.to_header,
            cafile=self.to_cafile,
            insecure=self.to_insecure,
            cert=self.to_cert,
            key=self.to_key,
            setup=self.to_setup,
            setup_auth=self.to_setup_auth,
        )

    def arguments(self, to: str) -> dict[str, Any]:
        """Return the arguments of :func:`weirpool.bridge` for the upstream at `to`."""
        to, session = of_context(to, self.session())
        settings = session.settings(to)
        setup = None
        if session.setup is not None or session.setup_auth is not None:
            setup = session.setup_payload(to, settings)
        address, context = session.tls(to)
        return {"to": address, "to_settings": settings, "to_ssl": context, "to_setup": setup}


@grouped
def bridge(
    listen: Annotated[str, Argument(metavar="FROM", help="The URL to listen on.")],
    to: Annotated[
        str,
        Argument(
            metavar="TO",
            help="The URL of the server to forward to, or @NAME of a saved context.",
            autocompletion=offered,
        ),
    ],
    options: ServeOptions,
    upstream: UpstreamOptions,
    kind: Annotated[
        list[str],
        Option("--kind", metavar="ROUTE=KIND", help=f"The kind of a route: {', '.join(KINDS)}; repeatable."),
    ] = [],  # noqa: B006 - the parser makes a new one
    schema: Annotated[
        str | None, Option("--schema", metavar="SOURCE", help="Kinds of routes from a schema; see weirpool mock.")
    ] = None,
    log_form: Log = "text",
) -> None:
    """Listen at FROM, and forward all requests to TO, which may have another protocol and transport.

    The upstream sends items only as clients request them. Each client has its own connection to the upstream. Stop it
    with Ctrl-C or SIGTERM: requests in flight may finish first.

    Example: weirpool bridge rsocket+ws://localhost:7878 river+tcp://localhost:7879

    Example: weirpool bridge river+ws://localhost:7880/river rsocket+tls://db.example.org:7878 --kind quotes.live=stream
    """
    from ..aio.loop import run
    from ..bridging.bridge import bridge as bridged
    from ..bridging.counters import Counters

    settings = options.settings()
    urls, acceptor = options.door([listen])
    kinds = _schema_kinds(schema) | _given_kinds(kind)
    arguments = upstream.arguments(to) | {"kinds": kinds, "acceptor": acceptor}
    start_logging(SERVING, log_form)
    counters = Counters()
    run(
        until_stopped(
            lambda taps: bridged(
                arguments.pop("to"), *urls, settings=settings, taps=taps, counters=counters, **arguments
            ),
            options,
            settings,
        )
    )
    if options.stats:
        _print(counters)


def _given_kinds(given: list[str]) -> dict[str, Kind]:
    found = {}
    for text in given:
        route, equals, name = text.rpartition("=")
        if not equals or name not in KINDS:
            raise LocalError(f"--kind {text!r} is not ROUTE=KIND with one of: {', '.join(KINDS)}")
        found[route] = Kind[name.upper()]
    return found


def _schema_kinds(source: str | None) -> dict[str, Kind]:
    """Return the kinds of the routes in a schema."""
    if source is None:
        return {}
    return {route: KIND_OF[procedure["type"]] for route, procedure in procedures_of(source).items()}


def _print(counters: Counters) -> None:
    note(shown_json(json.dumps(counters.as_json())))
