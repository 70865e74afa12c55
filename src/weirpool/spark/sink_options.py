"""The options of a sink: names, values and error messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..access.given import given_setting
from ..access.target import Target
from ..errors import LocalError
from .given import (
    Given,
    Plain,
    as_count,
    as_flag,
    as_number,
    as_seconds_or_none,
    as_size,
    as_text,
    as_url,
    one_of,
    shown_value,
)

__all__ = ["SinkOptions"]

DEFAULT_IDLE_TIMEOUT: Final = 120.0
"""Seconds: longer than a receiver needs to store a request's rows, and shorter than a person waits."""
DEFAULT_RETRIES: Final = 5
"""With delays that double from 0.1 s, they last some three seconds: a restart of the receiver."""
DEFAULT_CONCURRENCY: Final = 256
DEFAULT_REQUEST_BYTES: Final = 64 * 1024 * 1024
"""What a task keeps in memory until the receiver has accepted it."""
DEFAULT_DEAD_LETTERS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """The options of `df.write` and `df.writeStream`."""

    target: Target
    """The service."""
    route: str
    """Its handler."""
    kind: str = "channel"
    """The kind of the requests: "channel", "upload", "call" or "fire"."""
    transactional: bool = False
    """Whether the rows of a micro-batch are staged by the receiver, and become visible when all of them are."""
    timeout: float | None = None
    """Seconds that a request may take; None: no limit."""
    idle_timeout: float | None = DEFAULT_IDLE_TIMEOUT
    """Seconds without any progress of a request; None: no limit."""
    retries: int = DEFAULT_RETRIES
    """How often a task repeats a request because of the network or a busy receiver."""
    concurrency: int = DEFAULT_CONCURRENCY
    """Calls of a task in flight."""
    request_bytes: int = DEFAULT_REQUEST_BYTES
    """Maximum bytes of the rows of a channel or upload, but at least one run of rows."""
    rows_per_second: int | None = None
    """Maximum rate of a task; None: no limit."""
    dead_letters: str | None = None
    """A folder or URI for the rows that the receiver rejects; None: one such row fails the task."""
    max_dead_letters: int = DEFAULT_DEAD_LETTERS
    """Maximum number of them in a micro-batch; more fail it."""
    data_column: str | None = None
    """The column for an item's data; None: see :mod:`weirpool.spark.items`."""
    metadata_column: str | None = None
    """The column for an item's metadata; None: the row's origin."""

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SinkOptions:
        """Return the options of a sink; `LocalError` if one is unknown, missing, or has an invalid value."""
        given = Given(options, _OTHERS, {**_PLAIN, **_TARGET})
        url = given.get("url", as_url, None)
        route = given.get("route", as_text, None)
        if url is None or route is None:
            missing = "url" if url is None else "route"
            raise LocalError(f'option "{missing}" is missing: "url" and "route" name the destination of the rows')
        if given.get("insecure", as_flag, False):
            raise LocalError('option "insecure" is not available: trust the server\'s certificate with "cafile"')
        parsed = cls(
            target=_target(given, url),
            route=route,
            transactional=given.get("delivery", _delivery, False),
            **given.fields(_PLAIN),
        )
        parsed._check(given)
        return parsed

    def _check(self, given: Given) -> None:
        """Refuse options that contradict each other or have no effect."""
        if self.dead_letters is None:
            given.without("maxDeadLetters", 'without "deadLetters"')
        elif self.transactional or self.kind not in ("call", "channel"):
            raise LocalError(
                'option "deadLetters" needs rows that are rejected one by one: "kind" is "call", or "channel" with a '
                'handler that yields rejections, and "delivery" is not "transactional"'
            )
        if self.kind != "call":
            given.without("concurrency", 'unless "kind" is "call"')
        if self.transactional:
            given.without("kind", 'if "delivery" is "transactional"')
            given.without("maxBytesPerRequest", 'if "delivery" is "transactional"')


def _target(given: Given, url: str) -> Target:
    settings: dict[str, Any] = {}
    for name, text in given.group(SETTINGS).items():
        try:
            field, value = given_setting(name, text)
        except ValueError as error:
            option = f"{SETTINGS}{name}"
            raise LocalError(f'option "{option}" is {shown_value(option, text)}; {error}') from None
        settings[field] = value
    return Target(
        url=url,
        settings=settings,
        each_request=given.get("authenticate", _authenticate, False),
        **given.fields(_TARGET),
    )


def _kind(text: str) -> str:
    return one_of(text, "channel", "upload", "call", "fire")


def _authenticate(text: str) -> bool:
    return one_of(text, "setup", "request") == "request"


def _delivery(text: str) -> bool:
    return one_of(text, "at-least-once", "transactional") == "transactional"


SETTINGS: Final = "set."
# Spark adds checkpointLocation and queryName, which a sink does not use.
_OTHERS: Final = "url route delivery authenticate insecure set.* queryName checkpointLocation"
_PLAIN: Final[Plain] = {
    "kind": ("kind", _kind),
    "timeout": ("timeout", as_seconds_or_none),
    "idle_timeout": ("idleTimeout", as_seconds_or_none),
    "retries": ("retries", as_number),
    "concurrency": ("concurrency", as_count),
    "request_bytes": ("maxBytesPerRequest", as_size),
    "rows_per_second": ("maxRowsPerSecond", as_count),
    "dead_letters": ("deadLetters", as_text),
    "max_dead_letters": ("maxDeadLetters", as_count),
    "data_column": ("dataColumn", as_text),
    "metadata_column": ("metadataColumn", as_text),
}
_TARGET: Final[Plain] = {
    "token": ("token", as_text),
    "user": ("user", as_text),
    "password": ("password", as_text),
    "setup": ("setup", as_text),
    "cafile": ("cafile", as_text),
    "cert": ("cert", as_text),
    "key": ("key", as_text),
}
