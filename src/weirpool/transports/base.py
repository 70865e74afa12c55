"""The interfaces of transports, links and receivers, and their errors.

A transport is a module with two coroutines, `connect` and `listen`, which create links. A link calls its
:class:`Receiver` for events. The methods of :class:`Link` have the names and meanings of those of
:class:`asyncio.Transport`.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl as tls
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, Final, NamedTuple, Protocol

from ..errors import ConnectError, LinkLost, UrlError
from ..settings import Settings
from ..urls import Url

__all__ = [
    "BEGINNING_BYTES",
    "LOST",
    "MAX_REFUSED_LINKS",
    "SCOPE",
    "SILENT",
    "Accept",
    "Discard",
    "HangUp",
    "Link",
    "Listen",
    "Listener",
    "Receiver",
    "Refused",
    "Transport",
    "certificate_errors",
    "check_options",
    "connect_errors",
    "forget",
    "link_error",
    "listen_errors",
    "settled",
]

# OpenSSL's X509_V_ERR_... codes, for which another CA does not help.
_CLOCK: Final = "renew the server's certificate, and check the clock of this machine"
_NAME: Final = "connect to a name that the certificate has"
VERIFY_ADVICE: Final = {9: _CLOCK, 10: _CLOCK, 62: _NAME, 64: _NAME}
"""What to do about a certificate: it is not valid yet, has expired, or is for another name or address."""
TLS_ADVICE: Final = (
    ("CERTIFICATE", "the server wants a certificate of this client; pass one that it trusts with ssl=..."),
    ("UNKNOWN_CA", "the server wants a certificate of this client; pass one that it trusts with ssl=..."),
    ("PROTOCOL", "client and server have no version of TLS in common"),
    ("HANDSHAKE_FAILURE", "client and server have no cipher in common, or the server wants a certificate"),
)
"""What to do about an alert, by a part of its name."""
SILENT: Final = (
    "the server closed the connection before it sent anything; check that it uses this protocol and transport on this "
    "port, and that it trusts the certificate of this client if it wants one"
)
"""Why a link over TLS may be lost at once. With TLS 1.3, a client completes the handshake before the server has checked
its certificate, and servers of asyncio close without an alert."""
_CLOSED: Final = (ConnectionResetError, ConnectionAbortedError)
_NOT_A_NAME: Final = "the host is not a valid name; check its dots, and that no part is longer than 63 characters"


LATE: Final = 0.2
"""Seconds by which the timer of a process that has enough of the processor is never late."""


class Link(Protocol):
    """A bidirectional connection to the peer."""

    receiver: Receiver
    """The receiver of the link's events. It may be replaced at any time."""

    @property
    def unfinished(self) -> int:
        """The bytes that the link holds of a message that has not arrived completely."""

    @property
    def unread(self) -> int:
        """The bytes that the link holds because reading is paused."""

    def write(self, data: bytes) -> None:
        """Send `data`, buffering what the network does not accept yet."""

    def is_closing(self) -> bool:
        """Return whether the link is closed, or will be; output may be discarded."""

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that the network has not accepted yet."""

    def progress(self) -> tuple[int, int]:
        """Return the number of bytes that the peer's system has not received, and a number that grows as it does.

        The peer's program may not have read them: its system receives a limited amount on its behalf.
        """

    def pause_reading(self) -> None:
        """Stop calling `received`."""

    def resume_reading(self) -> None:
        """Call `received` again."""

    def close(self) -> None:
        """Close after all output is written; `link_lost` follows."""

    def abort(self) -> None:
        """Close now and discard unwritten output; `link_lost` follows."""

    def get_extra_info(self, name: str) -> Any:
        """Return the value of that name of asyncio's transports, such as `peercert`; None if there is none."""


class Receiver(Protocol):
    """The receiver of a link's events. All methods are called in the thread of its event loop."""

    def link_made(self, link: Link) -> None:
        """The link is open, and its transport's handshake is complete."""

    def received(self, data: bytes) -> None:
        """`data` was read. Empty data means that the link holds more: a part of a message, or what is not read yet."""

    def writing_paused(self) -> None:
        """More than `Settings.output_high_bytes` wait in the link: pause writing."""

    def writing_resumed(self) -> None:
        """The link accepts more output."""

    def link_lost(self, error: Exception | None) -> None:
        """The link is closed; `error` is the reason unless it was closed in order.

        For an accepted link that is lost before `link_made`, this is the only call.
        """


SCOPE: Final = "asgi_scope"
"""The information of a link that has the ASGI scope of the request that opened it."""
BEGINNING_BYTES: Final = 32
"""Bytes of a first message that is too long, from which its receiver can tell how to refuse it."""
MAX_REFUSED_LINKS: Final = 64
"""Refused peers per listener that are sent a reason at the same time; beyond it, sockets are closed without one."""


class Refused(NamedTuple):
    """The refusal of a link.

    Attributes:
        reason: Names the limit, for transports that can send it before the link is open.
        explainer: For transports that cannot: returns a receiver for the link, which sends the reason as its protocol
            does; None if too many links have one.

    """

    reason: str
    explainer: Callable[[], Receiver | None] = lambda: None


HangUp = Callable[[str], object]
"""Ends a link before `Receiver.link_made`, because another one gets its place, and tells the peer this reason if the
transport can."""
Accept = Callable[[str, HangUp | None], Receiver | Refused]
"""Called with the peer's address for each new link, before any handshake, and how to hang up; None if the link is lost
already, and only reported: then nobody else loses a place to it."""


class Listener(Protocol):
    """Accepts links."""

    url: Url
    """The address, with the actual port."""

    async def close(self) -> None:
        """Accept no more links. Accepted links stay open."""

    async def ended(self, seconds: float) -> None:
        """Wait up to `seconds` until all accepted links are closed, and abort the others. Call `close` first."""

    def hand_over(self) -> list[int]:
        """Leave the listening sockets to another process, and return their descriptors; none if that is impossible.

        From now on, `close` leaves links that the system has queued, and the file of a Unix socket, to that process.
        """


Listen = Callable[[Url, Accept, Settings, "tls.SSLContext | None"], Awaitable[Listener]]
"""Listens at a URL: :func:`weirpool.transports.listen`, or another source of links."""


class Discard:
    """The receiver of a link that is no longer needed."""

    def link_made(self, link: Link) -> None:
        """Close the link."""
        link.abort()

    def received(self, data: bytes) -> None:
        """Discard the data."""

    def writing_paused(self) -> None:
        """Do nothing: there is no output."""

    def writing_resumed(self) -> None:
        """Do nothing."""

    def link_lost(self, error: Exception | None) -> None:
        """Do nothing."""


class _Lost:
    """The transport of a lost link: it holds nothing, and discards output."""

    def write(self, data: bytes) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return True

    def can_write_eof(self) -> bool:
        return False

    def get_extra_info(self, name: str) -> Any:
        return None

    def _do_nothing(self) -> None:
        pass

    abort = close = pause_reading = resume_reading = _do_nothing


LOST: Final = _Lost()


class Transport(Protocol):
    """The module of a transport."""

    async def connect(self, url: Url, receiver: Receiver, settings: Settings, ssl: tls.SSLContext | None) -> None:
        """See :func:`weirpool.transports.connect`, which limits the time and converts each OSError."""

    async def listen(self, url: Url, accept: Accept, settings: Settings, ssl: tls.SSLContext | None) -> Listener:
        """See :func:`weirpool.transports.listen`."""


def check_options(url: Url, known: frozenset[str]) -> None:
    """Raise UrlError if `url` has an option that is neither in `known` nor an option of its protocol."""
    known = known | url.protocol_options
    for name in url.options:
        if name not in known:
            what = f"known are {', '.join(sorted(known))}" if known else f"{url.transport} has no options"
            # Without its options: one that is unknown may be a secret.
            raise UrlError(f"'{url.protocol}+{url.place}': unknown option {name!r}; {what}")


@contextmanager
def certificate_errors(url: Url) -> Iterator[None]:
    """Convert errors in reading certificates to UrlError."""
    try:
        yield
    except (OSError, TypeError, ValueError, IndexError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UrlError(f"'{url}': the certificates cannot be read: {reason}") from error


@contextmanager
def connect_errors(url: Url, settings: Settings) -> Iterator[None]:
    """Convert errors in connecting to a ConnectError that says what to do."""
    begun = monotonic()
    try:
        yield
    except TimeoutError:
        limit = settings.connect_timeout
        late = monotonic() - begun - limit
        advice = "check the address, and firewalls on the way"
        if late > LATE:
            # The answer may wait here: this process did not look for it in time.
            advice = f"this process was {late:.1f} s late itself, because it has too little of the processor"
        why = f"no answer within {limit:g} s; {advice}"
        raise ConnectError(f"cannot connect to {url.place}: {why}") from None
    except OSError as error:
        reason = SILENT if isinstance(error, _CLOSED) and url.transport in ("tls", "wss", "h2") else _reason(error)
        raise ConnectError(f"cannot connect to {url.place}: {reason}") from error
    except UnicodeError as error:
        raise ConnectError(f"cannot connect to {url.place}: {_NOT_A_NAME}") from error


def _reason(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return f"the host name is unknown ({error.strerror})"
    if isinstance(error, tls.SSLCertVerificationError):
        advice = VERIFY_ADVICE.get(error.verify_code, "pass its CA with ssl=... or ?ca=FILE")
        return f"the certificate is not trusted ({error.verify_message}); {advice}"
    if isinstance(error, tls.SSLError):
        reason = getattr(error, "reason", None) or str(error)
        advice = next((advice for part, advice in TLS_ADVICE if part in reason), "check that the server uses TLS there")
        return f"TLS failed ({reason}); {advice}"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused; check that the server is running"
    if isinstance(error, FileNotFoundError):
        return "the socket does not exist; check that the server is running"
    if isinstance(error, _CLOSED):
        return "the server closed the connection; check that it uses this protocol and transport on this port"
    return error.strerror or str(error)


@contextmanager
def listen_errors(url: Url) -> Iterator[None]:
    """Convert errors in binding to a ConnectError that says what to do."""
    try:
        yield
    except OSError as error:
        reasons = {
            errno.EADDRINUSE: "the address is in use; stop the other server, or choose another address",
            errno.EADDRNOTAVAIL: "this machine has no such address; omit the host to listen on all addresses",
            errno.ENOENT: "the folder does not exist; create it, or choose another path",
            errno.EACCES: "permission denied; use a port above 1023, or a folder that you may write to",
        }
        reason = reasons.get(error.errno or 0) or _reason(error)
        raise ConnectError(f"cannot listen on {url.place}: {reason}") from error
    except UnicodeError as error:
        raise ConnectError(f"cannot listen on {url.place}: {_NOT_A_NAME}") from error


def link_error(error: Exception | None) -> Exception | None:
    """Return the error for the session of a link that `error` has closed."""
    if isinstance(error, tls.SSLError):
        # With TLS 1.3, a server refuses the client's certificate after the handshake.
        return LinkLost(f"the connection broke: {_reason(error)}")
    if isinstance(error, OSError):
        return LinkLost(f"the connection broke: {error.strerror or error}")
    return error


async def settled(futures: Collection[asyncio.Future[None]]) -> None:
    """Wait for futures. If the waiting task is canceled, they are not, because others complete them."""
    if futures:
        await asyncio.wait(futures)


def forget(future: asyncio.Future[None]) -> None:
    """Cancel a future that nobody awaits any more. If it has failed, asyncio must not report that."""
    if not future.cancel() and not future.cancelled():
        future.exception()
