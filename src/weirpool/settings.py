"""All limits, timeouts and defaults of a session."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from .errors import LocalError
from .functions import check_plain
from .leases import LeasePolicy
from .networks import networks

__all__ = ["DEFAULT_SETTINGS", "ITEMS_IN_PARTS", "SESSIONS", "Settings"]

KIB = 1024
MIB = 1024 * KIB

ITEMS_IN_PARTS: Final = frozenset(
    "max_payload_bytes max_fragments max_empty_fragments max_reassembly_bytes max_process_reassembly_bytes"
    " reassembly_timeout".split()
)
"""Settings of protocols that send large items in parts."""
SESSIONS: Final = frozenset({"resume", "resume_bytes", "resume_timeout", "max_sessions", "resume_store"})
"""Settings of protocols whose sessions outlive their links."""

# RFC 9110, sections 5.1 and 5.5: the syntax of a header. A line break would begin another header.
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"([!-~]([\t -~]*[!-~])?)?")
# RFC 6454, section 6.2: scheme, host and port, as browsers write them.
_ORIGIN = re.compile(r"\*|null|[a-z][a-z0-9+.-]*://[^/\s]+")
_BYTES = ("max_stream_bytes", "max_connection_bytes", "max_identity_bytes", "max_process_bytes")
_ONES = ("credit", "batch_rows", "max_streams", "max_frame_bytes", "output_high_bytes", "heartbeats_until_dead")
_LEAST = {
    **dict.fromkeys((*_ONES, *_BYTES, "max_calls", "max_held_bytes"), 1),
    "max_unacked": 2,
    "heartbeat_interval": 0.001,
    "unread_timeout": 0.001,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Limits and timeouts. Times are in seconds, sizes in bytes. Exceeding any limit raises an error.

    A changed setting that has no effect with a URL's protocol and transport is refused. :func:`weirpool.urls.fitting`
    removes such settings, for programs that work with any protocol.

    Pass the ones that you change, or derive from existing ones with :func:`dataclasses.replace`::

        weirpool.connect(url, settings=Settings(credit=4096))
    """

    # Flow control.
    credit: int = 256
    """Items that a consumer requests in advance: enough to hide a 1 ms round trip at 100,000 items/s."""
    max_credit: int = 16_384
    """Maximum items requested in advance. The window grows up to this while a consumer takes half of it within 0.1 s; a
    larger window is not faster."""
    max_credit_bytes: int = 4 * MIB
    """Maximum bytes of items requested in advance; above this the window shrinks."""
    batch_rows: int = 65_536
    """Maximum rows of a ``batches()`` record batch; it is returned earlier when the network pauses."""
    batch_bytes: int = MIB
    """Payload bytes after which a ``batches()`` record batch is returned: this much stays in a processor's cache."""

    # Limits on what a peer can make this side store.
    max_frame_bytes: int = 16 * MIB - 1
    """One frame: the maximum that a 24-bit length can express."""
    max_setup_frame_bytes: int = 1 * MIB
    """One frame before the set-up is accepted, while the client is still unknown."""
    max_payload_bytes: int = 64 * MIB
    """One reassembled item or request, metadata and data together."""
    max_fragments: int = 65_536
    """Fragments of one item."""
    max_empty_fragments: int = 16
    """Consecutive empty fragments: they carry nothing, so only an attacker sends many."""
    max_reassembly_bytes: int = 128 * MIB
    """Incomplete items of one connection, in total."""
    max_process_reassembly_bytes: int = 1024 * MIB
    """Incomplete items and frames of all connections of this process, in total; beyond it, the connection that holds
    most loses its largest one. In reactive-streams-io, either limit ends the connection."""
    max_stream_bytes: int = 16 * MIB
    """Items of one stream that have arrived and were not consumed: a consumer requests no more items than fit, judging
    by the largest ones that have arrived."""
    max_connection_bytes: int = 128 * MIB
    """Everything that has arrived over one connection and was not consumed: items, and requests of handlers that wait;
    beyond it, reading stops."""
    max_identity_bytes: int = 256 * MIB
    """The same for all connections of a client's address, and the output that their sessions keep until it is
    confirmed; beyond it, those that hold more than their share are not read, and sessions without a link end."""
    max_process_bytes: int = 512 * MIB
    """The same for all connections of this process, which leaves half of a machine with 1 GiB to everything else;
    beyond it, the connection that holds most loses its largest stream. Of different values, the smallest applies."""
    unread_timeout: float = 30.0
    """How long reading may be stopped by these limits while nothing is consumed; then the connection's largest stream
    fails. Shorter than the time after which a peer gives up, because its keepalives are not read either."""
    frame_timeout: float = 30.0
    """How long a frame of which a part has arrived may stop growing; then the link is considered dead, whatever
    keepalive lifetime the peer has chosen."""
    reassembly_timeout: float = 60.0
    """Maximum time from the first fragment of an item to the last."""
    max_metadata_bytes: int = 1 * MIB
    """Metadata of one item or push."""
    max_metadata_entries: int = 256
    """Entries of one composite metadata."""
    max_calls: int = 4_096
    """Calls and uploads that this side has open at once on a connection; more of them wait, in order of arrival. The
    default is what a server admits by default. A peer that refuses calls lowers the limit of its connection."""
    max_streams: int = 4_096
    """Streams that the peer may have open at once. One that is canceled, and a FIRE, counts until its handler has
    returned: while such handlers take all places, nothing is read."""
    max_open_rate: int = 0
    """Streams that the peer may open per second, with twice as many in a burst; 0: no limit, because calls are streams
    and a fast client opens hundreds of thousands."""
    max_keepalive_bytes: int = 16 * KIB
    """Data of a KEEPALIVE, which must be sent back."""
    max_output_bytes: int = 64 * MIB
    """Output waiting for a peer that does not read; beyond it, and an eighth for headers, the connection ends. An item
    or a request that is larger is not sent: it fails with LocalError, and costs only its own stream."""
    output_high_bytes: int = 256 * KIB
    """Output waiting in a link at which producers pause: a few write calls, so that the socket never runs dry; at four
    times as much, no more requests are read."""
    max_connections: int = 10_000
    """Connections of a server: each costs a file descriptor and about 20 KiB. Links whose first message has not been
    read are counted separately, by the same limits; the oldest of them makes room for a new one. A full server still
    admits clients that resume a session."""
    max_connections_per_address: int = 100
    """Connections of a server from one address, or of one principal if the acceptor names it: a client needs only one,
    but many clients may share an address."""
    max_refusals_per_address: int = 100
    """Links from one address that name an unknown session; beyond it, none is resumed from there, because guessing
    needs many attempts. As many are forgotten per 30 s. New sessions are served, because many clients may share an
    address. Links that begin with junk are closed. As many are logged, and as many that a limit refuses. 0: no
    limit."""

    # Proxies in front of a server.
    trusted_proxies: tuple[str, ...] = ()
    """Networks whose proxies name their clients, such as "10.0.0.0/8"; "unix" trusts peers of Unix sockets. Over
    WebSocket and HTTP/2, a client's address is the last one in `Forwarded` or `X-Forwarded-For` that is not in these
    networks. From other addresses these headers are ignored."""
    proxy_protocol: bool = False
    """Connections from `trusted_proxies` begin with a PROXY protocol header, v1 or v2, before TLS. Connections without
    one are refused. From other addresses no header is read."""

    # reactive-streams-io.
    extensions: tuple[str, ...] = ()
    """Extensions to offer: "metadata" sends metadata with requests and items, if the peer offers it too."""
    element_sizes: tuple[tuple[str, int], ...] = ()
    """Routes whose items all have the same size, with that size: such items are sent without a length, and packed."""
    max_string_bytes: int = 64 * KIB
    """One string of a message: a route with the request's data, the text of an error, the reason of a goodbye."""
    max_extensions: int = 1_024
    """Extensions that a hello may list."""
    max_open_elements: int = 64
    """Items of one stream that have arrived only in part."""

    # Descriptions.
    reflection: bool = False
    """Answer the route `weirpool.describe` with the names, types and documentation of all handlers, to every peer that
    may make requests. Off, because a service should not tell strangers what it offers."""
    software: str = ""
    """The name and version that a description states, such as "quotes 1.4"; empty: none, because it helps an
    attacker."""

    # Leases.
    lease: LeasePolicy | bool = False
    """Leases: a client asks for them with True. A server grants them by a policy of `weirpool.leases`; without one, it
    rejects clients that ask. A client's policy applies to requests from its server; True grants them all."""
    lease_timeout: float = 10.0
    """How long a request waits for a lease, if it needs one; 0: it fails at once."""

    # Opening requests, on transports that start with HTTP.
    origins: tuple[str, ...] = ()
    """Origins whose web pages may open connections over WebSocket or HTTP/2, such as "https://example.org"; "*": any. A
    server refuses all other pages with 403, because they would act for the user of the browser. A client that sends no
    origin, or the server's own address, is admitted. HTTP/2 also refuses, with 415, any content type
    except the protocol's."""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Names and values that a client adds to its opening request, such as Authorization; they are never logged or
    shown."""

    # Resumption.
    resume: bool = False
    """A client asks for a session that outlives its links. A server that cannot resume rejects the set-up."""
    resume_timeout: float = 60.0
    """How long a session without a link waits for one; for a server, 0 disables resumption."""
    resume_bytes: int = 64 * MIB
    """Sent output that a session keeps until the peer confirms it; a session cannot be resumed from older output."""
    max_sessions: int = 1_000
    """Sessions without a link that a server keeps until their clients return, including River's; beyond it, the client
    that has most of them loses the one that has waited longest."""
    resume_store: str = ""
    """A folder in which a server keeps its sessions on disk, so that clients can resume them after it was killed and
    restarted; all output then waits for the disk. Empty: sessions end with the process."""

    # Time.
    connect_timeout: float = 10.0
    """From the first packet to an open link, including TLS and the transport's own handshake."""
    first_frame_timeout: float = 10.0
    """From an accepted link to a complete first frame."""
    acceptor_timeout: float = 10.0
    """Maximum time for a server's acceptor to decide about a set-up."""
    keepalive_interval: float = 20.0
    """Between the KEEPALIVE frames of a client."""
    keepalive_lifetime: float = 90.0
    """Silence after which a peer is considered dead."""
    close_grace: float = 5.0
    """How long calls in flight may take to finish when a connection or a server closes."""

    idle_timeout: float = 0.0
    """Silence after which a peer is considered dead in protocols without KEEPALIVE (ReactiveSocket 0.0,
    reactive-streams-io); 0: never."""

    # River.
    heartbeat_interval: float = 1.0
    """Between the heartbeats of a River server; both sides must use the same value."""
    heartbeats_until_dead: int = 2
    """Heartbeats that a River peer may miss before its link is closed."""
    handshake_timeout: float = 1.0
    """Maximum time for the first message of a River link, and for its answer."""
    session_grace: float = 5.0
    """How long a River session without a link waits for one."""
    max_unacked: int = 10_000
    """Messages that a River session keeps until its peer acknowledges them; `resume_bytes` limits their bytes. At half
    of either, items wait; beyond either, the session ends."""
    max_held_bytes: int = 64 * MIB
    """Items of a River session that have not been requested, and requests of a River client that has not answered the
    server's first heartbeat; beyond it, reading stops."""
    close_subscriptions: bool = False
    """A River client ends a subscription with ControlClose, as the specification says. The reference opens
    subscriptions with the closed bit and cancels them, because its servers continue after a ControlClose."""
    river_v1_1: bool = False
    """Serve River clients of version 1.1 as well."""

    # Older peers.
    client_ids: str = "odd"
    """The parity of the client's stream ids, on either side: "even" for peers of 2015 and 2016. A server of
    reactivesocket-0.2 follows the first request of each client."""
    lenient: bool = False
    """Read a PAYLOAD that has data but neither of its flags as an item, as peers of 2016 send it. A client of
    reactivesocket-0.2 requests one item with a stream and the others separately, as peers of 2017 expect it."""
    strict: bool = False
    """A client of reactivesocket-0.2 asks the server to reject its set-up unless it understands all of it (the S flag);
    `Setup.strict` tells the server's acceptor."""
    length_counts_itself: bool = False
    """The 24-bit length before each frame includes its own three bytes, as some peers of 2017 send and expect it, over
    TCP, TLS and Unix. Their sessions are not resumed."""
    served_0_2: str = "reactivesocket-0.2"
    """How a server reads a SETUP of version 0.2: "rsocket-1.0" for peers that use 1.0 with the version of its release
    candidate."""

    # Output.
    fragment_bytes: int = 1 * MIB
    """Items larger than this are sent in fragments, so that they do not delay other streams by more than about a
    millisecond; not smaller, because some peers in use cannot reassemble fragments."""
    metadata_mime: str = ""
    """The MIME type of the connection's metadata; empty: what the protocol's routing needs."""
    data_mime: str = "application/octet-stream"
    """The MIME type of the connection's data, as its set-up declares it; only handlers interpret it."""

    @property
    def all_sessions(self) -> int:
        """The maximum number of sessions of a server: those with a link, and those that wait for one."""
        return self.max_connections + self.max_sessions

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise LocalError(f"Settings.{name} is {getattr(self, name)}; it must be at least {least}")
        if not 64 <= self.fragment_bytes <= self.max_frame_bytes - 64:
            raise LocalError(
                f"Settings.fragment_bytes is {self.fragment_bytes}; it must be between 64 and max_frame_bytes - 64"
            )
        for name, choices in (("client_ids", ("odd", "even")), ("served_0_2", ("reactivesocket-0.2", "rsocket-1.0"))):
            if getattr(self, name) not in choices:
                raise LocalError(f"Settings.{name} is {getattr(self, name)!r}; it must be one of {', '.join(choices)}")
        if self.length_counts_itself and self.resume:
            raise LocalError(
                "Settings.resume cannot be combined with length_counts_itself, which disables resumption; remove one"
            )
        for name in ("keepalive_interval", "keepalive_lifetime"):
            # RSocket 1.0, SETUP: both are 31-bit milliseconds, greater than 0.
            if not 0.001 <= getattr(self, name) <= 2_147_483:
                raise LocalError(
                    f"Settings.{name} is {getattr(self, name)}; it must be between 0.001 and 2147483 seconds"
                )
        _check_mime("metadata_mime", self.metadata_mime)
        _check_mime("data_mime", self.data_mime)
        for route, size in self.element_sizes:
            if not 1 <= size <= self.max_frame_bytes:
                raise LocalError(
                    f"Settings.element_sizes has {size} for {route!r}; it must be between 1 and max_frame_bytes"
                )
        try:
            trusted = networks(self.trusted_proxies)
        except ValueError as error:
            raise LocalError(f"Settings.trusted_proxies: {error}; write networks such as 10.0.0.0/8, or unix") from None
        if self.proxy_protocol and not trusted:
            raise LocalError("Settings.proxy_protocol needs trusted_proxies; list the networks of the proxies there")
        for origin in self.origins:
            if not _ORIGIN.fullmatch(origin):
                raise LocalError(f"Settings.origins has {origin!r}; write https://host, with no path, or *")
        for header in self.headers:
            _check_header(header)
        if not isinstance(self.lease, bool):
            check_plain(self.lease.grant, "the method grant of Settings.lease")


def _check_mime(name: str, mime: str) -> None:
    # RSocket 1.0, SETUP: ASCII, after a length of 8 bits, and not null terminated.
    if not mime.isascii() or not mime.isprintable() or len(mime) > 255:
        raise LocalError(f"Settings.{name} is {mime[:40]!r}; it must be at most 255 printable ASCII characters")


def _check_header(header: object) -> None:
    match header:
        case (str(name), str(value)):
            if not _HEADER_NAME.fullmatch(name):
                raise LocalError(f"Settings.headers has the name {name!r}; it must be letters, digits and hyphens")
            if not _HEADER_VALUE.fullmatch(value):
                raise LocalError(f"Settings.headers: the value of {name} must be printable ASCII on one line")
        case _:
            # Not shown: it may be a secret.
            raise LocalError(
                "Settings.headers must be pairs of a name and a value, such as (('X-Name', 'value'),); of a dict, pass"
                " tuple(headers.items())"
            )


DEFAULT_SETTINGS = Settings()
