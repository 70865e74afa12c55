"""What a transport, the links it makes, and those who use them expect of each other.

A transport is a module with two coroutines, `connect` and `listen`, that make links. What happens on a link
is told to its :class:`Receiver`; what is to be done goes through the methods of :class:`Link`, whose names
and meaning are those of :class:`asyncio.Transport`.
"""

from __future__ import annotations

import errno
import socket
import ssl as tls
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, Protocol

from ..errors import ConnectError, LinkLost, UrlError
from ..settings import Settings
from ..urls import Url

__all__ = [
    "REFUSING",
    "Accept",
    "Discard",
    "Link",
    "Listener",
    "Receiver",
    "Refused",
    "Transport",
    "certificate_errors",
    "check_options",
    "connect_errors",
    "link_error",
    "listen_errors",
]


class Link(Protocol):
    """A way to the peer."""

    receiver: Receiver
    """Who is told what happens. It may be replaced at any time."""

    def write(self, data: bytes) -> None:
        """Send `data`, now or as soon as the network takes it."""

    def get_write_buffer_size(self) -> int:
        """Return how many bytes the network has not taken yet."""

    def progress(self) -> tuple[int, int]:
        """Return how many bytes wait to be taken by the other end's system, and a number that grows as it takes them.

        Nothing is known of what that system does with them: it takes some of what nobody reads.
        """

    def pause_reading(self) -> None:
        """Call `received` no more."""

    def resume_reading(self) -> None:
        """Call `received` again."""

    def close(self) -> None:
        """Close once everything is written; `link_lost` follows."""

    def abort(self) -> None:
        """Close now and forget what is not written; `link_lost` follows."""

    def get_extra_info(self, name: str) -> Any:
        """Return what asyncio's transports know under that name, such as `peercert`; None where there is no such."""


class Receiver(Protocol):
    """Who a link belongs to. All of this is called in the thread of its event loop."""

    def link_made(self, link: Link) -> None:
        """The link is open, with all that its transport needed to say first."""

    def received(self, data: bytes) -> None:
        """Bytes came in. None at all: the beginning of a message did, where whole messages are handed on."""

    def writing_paused(self) -> None:
        """`Settings.output_high_bytes` and more wait in the link: write less."""

    def writing_resumed(self) -> None:
        """The link has room again."""

    def link_lost(self, error: Exception | None) -> None:
        """The link is gone, for good; `error` says why unless it ended in order.

        It is also called, alone, for an accepted link that was lost before `link_made`.
        """


REFUSING: Final = 64
"""Refused peers of a listener that may learn why at the same time; beyond them a socket is closed without a word."""


class Refused(NamedTuple):
    """What a link gets that is not accepted.

    `reason` says which limit is reached, for transports that can say it before there is a link.
    """

    reason: str


Accept = Callable[[str], Receiver | Refused]
"""Called with the peer's address for each new link, before any handshake."""


class Listener(Protocol):
    """Where links come in."""

    url: Url
    """The place, with the port that was really bound."""

    async def close(self) -> None:
        """Accept no more links. Those that were accepted live on."""


class Discard:
    """The receiver of a link that nobody wants any more."""

    def link_made(self, link: Link) -> None:
        """Close it."""
        link.abort()

    def received(self, data: bytes) -> None:
        """Drop what came in."""

    def writing_paused(self) -> None:
        """Nothing is written any more."""

    def writing_resumed(self) -> None:
        """Nothing is written any more."""

    def link_lost(self, error: Exception | None) -> None:
        """As it should."""


class Transport(Protocol):
    """A transport's module."""

    async def connect(self, url: Url, receiver: Receiver, settings: Settings, ssl: tls.SSLContext | None) -> None:
        """See :func:`penstock.transports.connect`, which limits the time, and turns each OSError into what to do."""

    async def listen(self, url: Url, accept: Accept, settings: Settings, ssl: tls.SSLContext | None) -> Listener:
        """See :func:`penstock.transports.listen`."""


def check_options(url: Url, known: frozenset[str]) -> None:
    """Raise UrlError for an option that neither the transport of `url` nor its protocol knows."""
    known = known | url.protocol_options
    for name in url.options:
        if name not in known:
            what = f"known are {', '.join(sorted(known))}" if known else f"{url.transport} has none"
            raise UrlError(f"'{url}': unknown option {name!r}; {what}")


@contextmanager
def certificate_errors(url: Url) -> Iterator[None]:
    """Turn what goes wrong while certificates are read into a UrlError."""
    try:
        yield
    except (OSError, ValueError, IndexError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UrlError(f"'{url}': the certificates cannot be read: {reason}") from error


@contextmanager
def connect_errors(url: Url, settings: Settings) -> Iterator[None]:
    """Turn what goes wrong while connecting into a ConnectError that says what to do."""
    try:
        yield
    except TimeoutError:
        why = f"no answer within {settings.connect_timeout:g} s; is the address right, and no firewall in between?"
        raise ConnectError(f"cannot connect to {url.place}: {why}") from None
    except OSError as error:
        raise ConnectError(f"cannot connect to {url.place}: {_reason(error)}") from error


def _reason(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return f"the name is unknown ({error.strerror})"
    if isinstance(error, tls.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message}); name its CA with ssl=..., or ?ca=FILE"
    if isinstance(error, tls.SSLError):
        return f"TLS failed ({getattr(error, 'reason', None) or error}); does the server speak TLS there?"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused; is the server running?"
    if isinstance(error, FileNotFoundError):
        return "there is no such socket; is the server running?"
    if isinstance(error, ConnectionResetError | ConnectionAbortedError):
        return "the server closed the connection; does it speak that there?"
    return error.strerror or str(error)


@contextmanager
def listen_errors(url: Url) -> Iterator[None]:
    """Turn what goes wrong while binding into a ConnectError that says what to do."""
    try:
        yield
    except OSError as error:
        reasons = {
            errno.EADDRINUSE: "it is in use; stop what listens there, or choose another",
            errno.EADDRNOTAVAIL: "this machine has no such address; leave the host empty to listen on all",
            errno.EACCES: "permission denied; ports below 1024 and foreign folders need more rights",
        }
        reason = reasons.get(error.errno or 0) or _reason(error)
        raise ConnectError(f"cannot listen on {url.place}: {reason}") from error


def link_error(error: Exception | None) -> Exception | None:
    """Return what a broken link means for its session."""
    if isinstance(error, OSError):
        return LinkLost(f"the connection broke: {error.strerror or error}")
    return error
