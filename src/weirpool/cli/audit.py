"""`weirpool audit`: compares a journal with what the publisher has sent."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer import Option

from ..errors import ApplicationError, LocalError
from ..protocols import spec_of
from ..urls import parse_url
from .arguments import Route, Url
from .connect_options import SessionOptions
from .console import say, say_json
from .exits import FAILED
from .groups import grouped
from .values import duration

if TYPE_CHECKING:
    from ..archive import ArchiveReader
    from ..audit.compare import Audit
    from ..audit.sent import Query, Sent

__all__ = ["audit"]

POLL_SECONDS: Final = 0.05


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """The journal, and how long to wait for items on their way."""

    journal: Annotated[str, Option("--journal", "-j", help="The journal: a folder, or a URI such as s3://…")]
    source: Annotated[str | None, Option("--source", help="The log's name in the journal; the route by default.")] = (
        None
    )
    wait: Annotated[
        float, Option("--wait", metavar="SECONDS", parser=duration(), help="How long to wait for items that were sent.")
    ] = 5.0
    as_json: Annotated[bool, Option("--json", help="Print the result as a JSON object.")] = False


@grouped
def audit(url: Url, route: Route, options: SessionOptions, auditing: AuditOptions) -> None:
    """Check that a journal has what the publisher has sent, item by item.

    The exit code is 1 if it does not, or if nothing can be compared.

    The publisher's service must be audited, see `weirpool.audited`. A collector may be running: items that were sent
    when the check begins must arrive within --wait.

    Example: weirpool audit rsocket+tcp://localhost:7878 flights --journal data/flights
    """
    from ..aio.loop import run
    from ..audit.compare import compare
    from ..audit.sent import Query
    from ..journal.feedlog import stream_start
    from ..journal.storage import LogFolder

    source = route if auditing.source is None else auditing.source
    identity = LogFolder.of(auditing.journal, source).require()
    log = _reader(auditing.journal, source)
    start = stream_start(log.state)
    if start is None:
        raise LocalError(f"log {source!r} of {auditing.journal} was not written by a collector, or has no stream yet")
    rows = log.end - start
    query = Query(route)
    collected = identity.request
    if collected is not None and not spec_of(parse_url(collected.url or url).protocol).sent_data:
        # Otherwise the publisher knows the request only as it was sent, and the log has a digest of it as it was
        # written: the digest could match only the stream of another client, which wrote the same text.
        query = Query(route, identity.uuid, collected.data)
    streams = run(_ask(url, options, query))
    if not streams:
        raise LocalError(
            f"the publisher has not sent this stream since it was started: it knows no stream {route!r} with the "
            "request that this log collects"
        )
    deadline = time.monotonic() + auditing.wait
    found = [compare(_caught_up(log, start + sent.items, deadline), start, sent, rows) for sent in streams]
    # Several clients may have made the same request, or any request of the route. A stream that agrees wins.
    best = max(found, key=lambda each: (each.agrees, each.compared))
    _print(source, best, auditing.as_json)
    if not best.agrees or best.waiting or (best.unknown and not best.compared):
        raise typer.Exit(FAILED)


def _reader(journal: str, source: str) -> ArchiveReader:
    from ..archive import ArchiveReader

    return ArchiveReader(journal, source)


async def _ask(url: str, options: SessionOptions, query: Query) -> list[Sent]:
    """Return what the publisher has sent."""
    from ..aio.client import connect
    from ..aio.typed_peer import typed
    from ..audit.sent import ROUTE, Sent
    from ..schema.formats import format_of

    settings = options.settings(url)
    setup = options.setup_payload(url, settings)
    address, context = options.tls(url)
    async with connect(address, settings=settings, setup=setup, ssl=context) as peer:
        mime = "" if format_of(peer.data_mime) else "application/json"
        try:
            return await typed(peer, mime).call(ROUTE, query, returns=list[Sent])
        except ApplicationError as error:
            raise LocalError(
                f"the publisher does not tell what it has sent ({error}); its service must be audited: "
                "weirpool.audited(service)"
            ) from None


def _caught_up(log: ArchiveReader, end: int, deadline: float) -> ArchiveReader:
    """Return the log when it has the rows below `end`, or as it is when the time is over."""
    log.refresh()
    while log.end < end and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        log.refresh()
    return log


def _print(source: str, found: Audit, as_json: bool) -> None:
    fields: dict[str, Any] = {
        "source": source,
        "start": found.start,
        "sent": found.sent,
        "rows": found.rows,
        "compared": found.compared,
        "unknown": found.unknown,
        "partial": found.partial,
        "waiting": found.waiting,
        "differing": found.differing,
        "surplus": found.surplus,
    }
    if as_json:
        say_json(fields)
    else:
        say(f"{source}: {found}")
