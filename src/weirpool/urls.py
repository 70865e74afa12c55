"""Parses and formats URLs: ``<protocol>+<transport>://host:port/path?options``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from .errors import LocalError, UrlError
from .protocols import EXAMPLE_URL, FEATURES, PROTOCOLS, spec_of, specific, uses
from .settings import DEFAULT_SETTINGS, Settings

__all__ = ["TRANSPORTS", "WITH_HEADERS", "Url", "check_headers", "check_settings", "fitting", "parse_url", "parse_urls"]

TRANSPORTS: Final = ("tcp", "tls", "unix", "ws", "wss", "memory", "h2c", "h2", "quic")
"""The transports of URLs; :mod:`weirpool.transports` has their modules."""

NETWORKED: Final = frozenset({"tcp", "tls", "ws", "wss", "h2c", "h2", "quic"})
"""Transports with a host and a port. The others have a path."""

WITH_HEADERS: Final = ("h2", "h2c", "ws", "wss")
"""Transports that start with an HTTP request, which has `Settings.headers`."""

TRANSPORT_SETTINGS: Final[dict[str, tuple[str, ...]]] = {
    "headers": WITH_HEADERS,
    "keepalive_lifetime": ("quic",),
    "max_empty_fragments": WITH_HEADERS,
    "max_setup_frame_bytes": ("ws", "wss"),
    "origins": WITH_HEADERS,
    "proxy_protocol": ("tcp", "tls", "unix", *WITH_HEADERS),
    "trusted_proxies": ("tcp", "tls", "unix", *WITH_HEADERS),
}
"""The settings that only some transports use, and these transports."""

EXAMPLE: Final = f"write one like {EXAMPLE_URL}"
_SIDES: Final = ("client", "server")


@dataclass(frozen=True, slots=True)
class Url:
    """The parts of a URL.

    Attributes:
        protocol: The protocol, such as "rsocket".
        transport: The transport, such as "tcp".
        host: A name, or an address without brackets; empty for all interfaces of this machine.
        port: The port; 0 on a server lets the system choose one. None for transports without ports.
        path: A file for "unix", or a null character and the name of an abstract socket; a name for "memory"; otherwise
            the part after the port.
        options: The query parameters.

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
        """The URL without protocol and options, for error messages."""
        if self.port is None:
            return f"{self.transport}://{quote(self.path)}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.transport}://{host}:{self.port}{quote(self.path)}"

    @property
    def protocol_options(self) -> frozenset[str]:
        """The names of the options of its protocol, which are valid with every transport."""
        return spec_of(self.protocol).options

    def with_port(self, port: int) -> Url:
        """Return this URL with another port."""
        return replace(self, port=port)

    def with_descriptors(self, descriptors: list[int]) -> Url:
        """Return this URL with the option that names the descriptors of listening sockets."""
        return replace(self, options={**self.options, "fd": ",".join(map(str, descriptors))})


def parse_url(text: str) -> Url:
    """Return the parts of a URL.

    Raises UrlError if the URL is malformed, or its protocol or transport is unknown; the message suggests a correction.
    """
    shown = _without_secrets(text)
    if "://" not in text:
        raise UrlError(f"{shown!r} is not a valid URL; {EXAMPLE}")
    scheme, _, rest = text.partition("://")
    protocol, plus, transport = scheme.lower().rpartition("+")
    if not plus:
        raise UrlError(f"{shown!r} has no transport; {EXAMPLE}, with one of {', '.join(TRANSPORTS)}")
    _known("protocol", protocol, PROTOCOLS, shown)
    _known("transport", transport, TRANSPORTS, shown)
    refusal = UrlError(f"{shown!r}: users, passwords and fragments are not supported; {EXAMPLE}")
    # urlsplit() does not support our schemes, so it gets only the rest.
    try:
        parts = urlsplit(f"//{rest}")
        options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError as error:
        # The error may quote the part before the @.
        raise refusal if "@" in text else UrlError(f"{shown!r}: {error}; {EXAMPLE}") from None
    if parts.fragment or "@" in parts.netloc:
        raise refusal
    if transport in NETWORKED:
        port = _port(parts.netloc, shown, refusal)
        return Url(protocol, transport, parts.hostname or "", port, unquote(parts.path), options)
    path = unquote(parts.netloc + parts.path)
    if "\0" in path[transport == "unix" :] or path == "\0":
        raise UrlError(
            f"{shown!r}: the path has a null character; only an abstract socket begins with one (unix://%00x)"
        )
    if not path:
        raise UrlError(f"{shown!r} has no path; write one like {PROTOCOLS[0]}+{transport}:///tmp/weirpool.sock")
    return Url(protocol, transport, path=path, options=options)


def check_headers(transport: str, what: str) -> None:
    """Raise LocalError if `transport` does not start with an HTTP request. `what` names the headers in the message."""
    if transport not in WITH_HEADERS:
        known = f"{', '.join(WITH_HEADERS[:-1])} and {WITH_HEADERS[-1]}"
        raise LocalError(f"{what} works only with {known}, which start with HTTP, not with {transport}; leave it out")


def check_settings(urls: Sequence[Url], settings: Settings, *, serving: bool) -> None:
    """Raise LocalError if a setting was changed that has no effect with any of `urls`.

    Args:
        urls: The servers to connect to, or the addresses to serve.
        settings: The settings.
        serving: Whether this side is the server.

    """
    for name in _without_effect(urls, settings, serving):
        places = ", ".join(dict.fromkeys(f"{url.protocol}+{url.transport}" for url in urls))
        lack = FEATURES.get(name)
        if lack is not None and len(urls) == 1 and not uses(urls[0].protocol, name, serving):
            raise LocalError(f"{urls[0].protocol} {lack}; leave Settings.{name} out")
        raise LocalError(f"Settings.{name} has no effect on a {_SIDES[serving]} of {places}; leave it out")


def parse_urls(urls: Iterable[str], settings: Settings | None, *, serving: bool) -> list[Url]:
    """Return the parts of URLs, of which at least one uses each setting that was changed.

    Raises:
        UrlError: As `parse_url`.
        LocalError: As `check_settings`.

    """
    places = [parse_url(url) for url in urls]
    if settings is not None:
        check_settings(places, settings, serving=serving)
    return places


def fitting(settings: Settings, *urls: str, serving: bool = False) -> Settings:
    """Return `settings` with the defaults of those that have no effect with any of `urls`.

    This is for programs that work with any protocol: :func:`weirpool.connect` and :func:`weirpool.serve` refuse such
    settings.

    Args:
        settings: The settings.
        urls: The servers to connect to, or the addresses to serve.
        serving: Whether this side is the server.

    """
    names = _without_effect([parse_url(url) for url in urls], settings, serving)
    return replace(settings, **{name: getattr(DEFAULT_SETTINGS, name) for name in names})


def _without_effect(urls: Sequence[Url], settings: Settings, serving: bool) -> list[str]:
    """Return the names of the settings that were changed and have no effect with any of `urls`."""
    return [
        name
        for name in sorted(specific() | TRANSPORT_SETTINGS.keys())
        if getattr(settings, name) != getattr(DEFAULT_SETTINGS, name)
        and not any(_uses(url, name, serving, settings) for url in urls)
    ]


def _uses(url: Url, name: str, serving: bool, settings: Settings) -> bool:
    if name == "length_counts_itself" and url.transport in ("ws", "wss"):
        # Messages have no length before them.
        return False
    if name == "trusted_proxies" and url.transport not in WITH_HEADERS and not settings.proxy_protocol:
        # Only headers tell the client's address.
        return False
    return url.transport in TRANSPORT_SETTINGS.get(name, ()) or uses(url.protocol, name, serving)


def _without_secrets(text: str) -> str:
    """Return a URL without the part before an @ and values of options, which may be secrets, for error messages."""
    head, at, rest = text.rpartition("@")
    scheme, colon, _ = head.partition("://")
    place, question, options = (f"{scheme if colon else ''}{colon}…@{rest}" if at else text).partition("?")
    return place + question + re.sub("=[^&]*", "=…", options)


def _port(netloc: str, text: str, refusal: UrlError) -> int:
    digits = netloc.rpartition("]")[2].rpartition(":")[2] if ":" in netloc.rpartition("]")[2] else ""
    if not (digits.isascii() and digits.isdigit() and int(digits) <= 0xFFFF):
        if "@" in text:
            # A password with a slash: the supposed port is a part of it.
            raise refusal
        what = f"port {digits!r} is not a number from 0 to 65535" if digits else "the port is missing"
        raise UrlError(f"{text!r}: {what}; {EXAMPLE}")
    return int(digits)


def _initials(name: str) -> str:
    """Return a name as the documentation abbreviates it: rs, or rs/0, for reactive-streams."""
    return "".join(part[:1] for part in name.split("-"))


def _known(what: str, name: str, names: tuple[str, ...], text: str) -> None:
    if name in names:
        return
    near = get_close_matches(name, names, n=1) or [each for each in names if _initials(each) == name.partition("/")[0]]
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(names)}"
    raise UrlError(f"{text!r}: unknown {what} {name!r}; {hint}")
