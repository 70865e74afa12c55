"""The options that describe a request."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final

from typer import Option

from ..errors import LocalError
from ..payload import Payload
from ..texts import concealed
from .connect_options import BINARY, check_composite
from .console import note
from .credentials import credentials
from .values import offering, read_bytes

if TYPE_CHECKING:
    from .. import TraceContext
    from ..settings import Settings

__all__ = ["WORDS", "Auth", "RequestOptions", "b3", "trace_context"]

WORDS: Final = ("sampled", "unsampled", "debug", "undecided")
"""Sampling decisions for a new trace."""

_B3 = re.compile(r"([0-9a-f]{32}|[0-9a-f]{16})-([0-9a-f]{16})(?:-([01d]))?(?:-([0-9a-f]{16}))?")
"""B3 Propagation, Single Header: trace id, span id, sampling state, parent span id."""
_W3C = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
"""W3C Trace Context, traceparent Header."""

_SAMPLING: Final[dict[str | None, dict[str, Any]]] = {
    "sampled": {"sampled": True},
    "unsampled": {"sampled": False},
    "debug": {"debug": True},
    "undecided": {},
    "1": {"sampled": True},
    "0": {"sampled": False},
    "d": {"debug": True},
    None: {},
}


Auth = Annotated[
    str | None,
    Option(
        "--auth",
        metavar="AUTH",
        envvar="WEIRPOOL_AUTH",
        help="simple:USER:PASSWORD or bearer:TOKEN; @FILE or env:NAME for all of it or only the secret.",
        show_default=False,
    ),
]


@dataclass(frozen=True, kw_only=True)
class RequestOptions:
    """A request's data and metadata."""

    __repr__ = concealed

    data: Annotated[str, Option("--data", "-d", help="The request's data; @FILE reads a file, - standard input.")] = ""
    metadata: Annotated[
        str | None, Option("--metadata", "-m", metavar="DATA", help="Metadata in addition to the route; see --data.")
    ] = None
    auth: Auth = None
    request_mime: Annotated[
        str | None, Option("--request-mime", metavar="MIME", help="MIME type of the request's data.")
    ] = None
    accept: Annotated[
        list[str], Option("--accept", metavar="MIME", help="A MIME type that the response may have; repeatable.")
    ] = field(default_factory=list)
    entry: Annotated[
        list[str], Option("--entry", metavar="MIME=DATA", help="Another entry of composite metadata; repeatable.")
    ] = field(default_factory=list)
    trace: Annotated[
        str | None,
        Option(
            "--trace",
            help=f"Trace of the request: {', '.join(WORDS)} for a new one; or a b3 or traceparent header.",
            autocompletion=offering(*WORDS),
        ),
    ] = None

    def request(self, url: str, route: str, settings: Settings) -> tuple[str, Payload]:
        """Return the route and the payload of the request. The route is empty if the metadata contains it."""
        data = read_bytes(self.data)
        metadata = None if self.metadata is None else read_bytes(self.metadata)
        if self.auth is None and self.request_mime is None and self.trace is None and not (self.accept or self.entry):
            return route, Payload(data, metadata)
        check_composite(url, settings, "--auth, --request-mime, --accept, --entry and --trace need")
        return "", Payload(data, self._composite(route, metadata))

    def lasting_metadata(self, payload: Payload) -> bytes | None:
        """Return the metadata of a request from :meth:`request` without its route, credentials and trace.

        These may differ each time: a request with another token is the same request.
        """
        if self.auth is None and self.trace is None:
            return payload.metadata
        from .. import Metadata

        found = Metadata.decode(payload.metadata)
        changing = {entry.mime for entry in Metadata(tags=found.tags, auth=found.auth, trace=found.trace).entries}
        lasting = [entry for entry in found.entries if entry.mime not in changing]
        if [entry.mime for entry in lasting] == [BINARY]:
            # The same as for a request without credentials.
            return lasting[0].content
        return Metadata(entries=lasting).encode() if lasting else None

    def _composite(self, route: str, metadata: bytes | None) -> bytes:
        from .. import Metadata

        entries = [] if metadata is None else [(BINARY, metadata)]
        trace = None if self.trace is None else trace_context(self.trace)
        if trace is not None and self.trace in WORDS:
            # The id is needed to find a new trace.
            note(f"trace {b3(trace)}")
        return Metadata(
            auth=None if self.auth is None else credentials(self.auth),
            mime=None if self.request_mime is None else _mime(self.request_mime),
            accept=[_mime(text) for text in self.accept],
            trace=trace,
            entries=[*entries, *(_entry(text) for text in self.entry)],
        ).addressed(route)


def _entry(text: str) -> tuple[str | int, bytes]:
    mime, equals, value = text.partition("=")
    if not equals:
        raise LocalError(f"--entry {text!r} is not MIME=DATA")
    return _mime(mime), read_bytes(value)


def _mime(text: str) -> str | int:
    """Return a MIME type, or its number."""
    return int(text, 0) if text.isdecimal() or text.startswith("0x") else text


def trace_context(text: str) -> TraceContext:
    """Return a new trace context, or the one in the value of a `b3` or `traceparent` header."""
    from .. import TraceContext

    if text in WORDS:
        # An id of 0 is invalid.
        return TraceContext(secrets.randbits(128) | 1, secrets.randbits(64) | 1, wide=True, **_SAMPLING[text])
    if found := _W3C.fullmatch(text):
        return TraceContext.from_w3c(int(found[1], 16), int(found[2], 16), int(found[3], 16))
    if found := _B3.fullmatch(text):
        parent = None if found[4] is None else int(found[4], 16)
        ids = int(found[1], 16), int(found[2], 16), parent
        return TraceContext(*ids, wide=len(found[1]) == 32, **_SAMPLING[found[3]])
    raise LocalError(f"{text!r} is not a trace; use {', '.join(WORDS)}, or the value of a b3 or traceparent header")


def b3(trace: TraceContext) -> str:
    """Return the value of a `b3` header for a trace context."""
    state = "-d" if trace.debug else "" if trace.sampled is None else f"-{int(trace.sampled)}"
    parent = "" if trace.parent_id is None else f"-{trace.parent_id:016x}"
    return f"{trace.trace_id:0{32 if trace.wide else 16}x}-{trace.span_id:016x}{state}{parent}"
