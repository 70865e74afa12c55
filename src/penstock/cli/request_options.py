"""The options that say what a request holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ..errors import LocalError
from ..payload import Payload
from .arguments import offering, read_bytes
from .credentials import credentials
from .session_options import check_composite
from .tracing import WORDS, b3, trace_context

if TYPE_CHECKING:
    from ..settings import Settings

__all__ = ["OCTETS", "RequestOptions"]

OCTETS: Final = "application/octet-stream"
"""What metadata beside the route is, unless --entry says more of it."""


@dataclass(frozen=True, kw_only=True)
class RequestOptions:
    """A request's data and metadata."""

    data: Annotated[
        str, typer.Option("--data", "-d", help="The request's data; @FILE reads a file, - standard input.")
    ] = ""
    metadata: Annotated[
        str | None, typer.Option("--metadata", "-m", metavar="DATA", help="Metadata beside the route; as --data.")
    ] = None
    auth: Annotated[
        str | None,
        typer.Option(
            "--auth",
            metavar="AUTH",
            envvar="PENSTOCK_AUTH",
            help="simple:USER:PASSWORD or bearer:TOKEN; @FILE and env:NAME hold all of it, or the secret alone.",
            show_default=False,
        ),
    ] = None
    request_mime: Annotated[
        str | None, typer.Option("--request-mime", metavar="MIME", help="What this request's data is.")
    ] = None
    accept: Annotated[
        list[str], typer.Option("--accept", metavar="MIME", help="What the answer may be; repeatable.")
    ] = field(default_factory=list)
    entry: Annotated[
        list[str],
        typer.Option("--entry", metavar="MIME=DATA", help="A further entry of composite metadata; repeatable."),
    ] = field(default_factory=list)
    trace: Annotated[
        str | None,
        typer.Option(
            "--trace",
            help=f"{', '.join(WORDS)}: a new trace; or a b3 or traceparent header.",
            autocompletion=offering(*WORDS),
        ),
    ] = None

    def request(self, url: str, route: str, settings: Settings) -> tuple[str, Payload]:
        """Return the route to ask for and the request; the route is empty where the metadata holds it.

        Raises:
            LocalError: A file cannot be read, an option is malformed, or the metadata has no room for it.

        """
        data = read_bytes(self.data)
        metadata = None if self.metadata is None else read_bytes(self.metadata)
        if self.auth is None and self.request_mime is None and self.trace is None and not (self.accept or self.entry):
            return route, Payload(data, metadata)
        check_composite(url, settings, "--auth, --request-mime, --accept, --entry and --trace need")
        return "", Payload(data, self._composite(route, metadata))

    def lasting_metadata(self, payload: Payload) -> bytes | None:
        """Return the metadata of a request that :meth:`request` returned, without what may change each time.

        The route, credentials and the trace are left out: the request is the same with another token.
        """
        if self.auth is None and self.trace is None:
            return payload.metadata
        from .. import Metadata

        found = Metadata.decode(payload.metadata)
        passing = {entry.mime for entry in Metadata(tags=found.tags, auth=found.auth, trace=found.trace).entries}
        lasting = [entry for entry in found.entries if entry.mime not in passing]
        if [entry.mime for entry in lasting] == [OCTETS]:
            # As it is without credentials.
            return lasting[0].content
        return Metadata(entries=lasting).encode() if lasting else None

    def _composite(self, route: str, metadata: bytes | None) -> bytes:
        from .. import Metadata

        beside = [] if metadata is None else [(OCTETS, metadata)]
        trace = None if self.trace is None else trace_context(self.trace)
        if trace is not None and self.trace in WORDS:
            # Whoever asks for a new trace wants to find it again.
            typer.echo(f"trace {b3(trace)}", err=True)
        return Metadata(
            auth=None if self.auth is None else credentials(self.auth),
            mime=None if self.request_mime is None else _mime(self.request_mime),
            accept=[_mime(text) for text in self.accept],
            trace=trace,
            entries=[*beside, *(_entry(text) for text in self.entry)],
        ).addressed(route)


def _entry(text: str) -> tuple[str | int, bytes]:
    mime, equals, value = text.partition("=")
    if not equals:
        raise LocalError(f"--entry {text!r} is no MIME=DATA")
    return _mime(mime), read_bytes(value)


def _mime(text: str) -> str | int:
    """Return a MIME type, or the number that stands for one."""
    return int(text, 0) if text.isdecimal() or text.startswith("0x") else text
