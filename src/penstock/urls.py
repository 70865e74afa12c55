"""URLs: ``<protocol>+<transport>://host:port/path?options``, to their parts and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from .errors import LocalError, UrlError
from .protocols import EXAMPLE_URL, PROTOCOLS, spec_of

__all__ = ["TRANSPORTS", "WITH_HEADERS", "Url", "check_headers", "parse_url"]

TRANSPORTS: Final = ("tcp", "tls", "unix", "ws", "wss", "memory", "h2c", "h2", "quic")
"""The transports that URLs may name; :mod:`penstock.transports` knows where each of them is."""

NETWORKED: Final = frozenset({"tcp", "tls", "ws", "wss", "h2c", "h2", "quic"})
"""Transports that have a host and a port. The others have a path."""

WITH_HEADERS: Final = ("h2", "h2c", "ws", "wss")
"""Transports that begin with an HTTP request, and so carry `Settings.headers`."""

EXAMPLE: Final = f"write one like {EXAMPLE_URL}"


@dataclass(frozen=True, slots=True)
class Url:
    """A place, and how to talk to it.

    Attributes:
        protocol: What is spoken there, such as "rsocket".
        transport: What carries it, such as "tcp".
        host: A name or an address without brackets; empty means every interface of this machine.
        port: 0 lets the system choose one, on a server. None for transports that have no ports.
        path: A file for "unix", a name for "memory", else the part behind the port.
        options: What stands behind the question mark.

    """

    protocol: str
    transport: str
    host: str = ""
    port: int | None = None
    path: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        options = f"?{urlencode(self.options)}" if self.options else ""
        return f"{self.protocol}+{self.place}{options}"

    @property
    def place(self) -> str:
        """The URL without protocol and options, as error messages show it."""
        if self.port is None:
            return f"{self.transport}://{quote(self.path)}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.transport}://{host}:{self.port}{quote(self.path)}"

    @property
    def protocol_options(self) -> frozenset[str]:
        """The options that its protocol knows, whatever the transport."""
        return spec_of(self.protocol).options

    def with_port(self, port: int) -> Url:
        """Return this URL with another port."""
        return replace(self, port=port)


def parse_url(text: str) -> Url:
    """Return the parts of a URL.

    Raises UrlError if it names no protocol, transport or place that we know; the message says what was meant, perhaps.
    """
    shown = _without_user(text)
    if "://" not in text:
        raise UrlError(f"{shown!r} is no URL; {EXAMPLE}")
    scheme, _, rest = text.partition("://")
    protocol, plus, transport = scheme.lower().rpartition("+")
    if not plus:
        raise UrlError(f"{shown!r} names no transport; {EXAMPLE}, with one of {', '.join(TRANSPORTS)}")
    _known("protocol", protocol, PROTOCOLS, shown)
    _known("transport", transport, TRANSPORTS, shown)
    refusal = UrlError(f"{shown!r}: neither users, passwords nor fragments are used here; {EXAMPLE}")
    # The parser of the standard library knows nothing of our schemes: it gets the rest alone.
    try:
        parts = urlsplit(f"//{rest}")
        options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError as error:
        # The error may quote what stands before the @.
        raise refusal if shown != text else UrlError(f"{text!r}: {error}; {EXAMPLE}") from None
    if parts.fragment or "@" in parts.netloc:
        raise refusal
    if transport in NETWORKED:
        port = _port(parts.netloc, text, refusal)
        return Url(protocol, transport, parts.hostname or "", port, unquote(parts.path), options)
    path = unquote(parts.netloc + parts.path)
    if not path:
        raise UrlError(f"{shown!r} names no path; write one like {PROTOCOLS[0]}+{transport}:///tmp/penstock.sock")
    return Url(protocol, transport, path=path, options=options)


def check_headers(transport: str, what: str) -> None:
    """Refuse headers where nothing carries them.

    Raises LocalError if `transport` does not begin with an HTTP request; the message begins with `what`.
    """
    if transport not in WITH_HEADERS:
        known = f"{', '.join(WITH_HEADERS[:-1])} and {WITH_HEADERS[-1]}"
        raise LocalError(f"{what} is for {known}, which begin with HTTP, and {transport} does not; leave it out")


def _without_user(text: str) -> str:
    """Return a URL as errors may show it: what stands before an @ may be a password."""
    head, at, rest = text.rpartition("@")
    scheme, colon, _ = head.partition("://")
    return f"{scheme if colon else ''}{colon}…@{rest}" if at else text


def _port(netloc: str, text: str, refusal: UrlError) -> int:
    digits = netloc.rpartition("]")[2].rpartition(":")[2] if ":" in netloc.rpartition("]")[2] else ""
    if not (digits.isascii() and digits.isdigit() and int(digits) <= 0xFFFF):
        if "@" in text:
            # A password that holds a slash: what looks like the port is a part of it.
            raise refusal
        what = f"port {digits!r} is no number from 0 to 65535" if digits else "it names no port"
        raise UrlError(f"{text!r}: {what}; {EXAMPLE}")
    return int(digits)


def _known(what: str, name: str, names: tuple[str, ...], text: str) -> None:
    if name in names:
        return
    near = get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(names)}"
    raise UrlError(f"{text!r}: unknown {what} {name!r}; {hint}")
