"""Every limit, timeout and default of a session, in one frozen object."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .errors import LocalError
from .leases import LeasePolicy

__all__ = ["DEFAULT_SETTINGS", "Settings"]

KIB = 1024
MIB = 1024 * KIB

# RFC 9110, sections 5.1 and 5.5: what a header may be. Above all, no line breaks: they would begin another header.
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"([!-~]([\t -~]*[!-~])?)?")
# RFC 6454, section 6.2: scheme, host and port, as browsers write them.
_ORIGIN = re.compile(r"\*|null|[a-z][a-z0-9+.-]*://[^/\s]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Limits and timeouts. Times are in seconds, sizes in bytes, and every one of them trips loudly.

    Change some of them with :func:`dataclasses.replace`, or name them when you make one::

        penstock.connect(url, settings=Settings(credit=4096))
    """

    # What flows.
    credit: int = 256
    """Items that a consumer asks for ahead: enough to hide a 1 ms round trip at 100,000 items/s."""
    max_credit: int = 16_384
    """Items to which that grows by itself, while a consumer takes half of it within 0.1 s: more is no faster."""
    max_credit_bytes: int = 4 * MIB
    """Bytes of as many items as are asked for ahead, above which it does not grow, and shrinks again."""
    batch_rows: int = 65_536
    """Rows of a ``batches()`` record batch at most; it is handed out earlier when the network pauses."""
    batch_bytes: int = MIB
    """Payload bytes after which a ``batches()`` record batch is handed out: so much stays in a processor's cache."""

    # What the peer may make us hold.
    max_frame_bytes: int = 16 * MIB - 1
    """One frame: the most that a 24-bit length can say."""
    max_setup_frame_bytes: int = 1 * MIB
    """One frame before the set-up is accepted: nobody has said yet who they are."""
    max_payload_bytes: int = 64 * MIB
    """One reassembled item or request, metadata and data together."""
    max_fragments: int = 65_536
    """Fragments of one item."""
    max_empty_fragments: int = 16
    """Empty fragments in a row: they carry nothing, so only an attacker sends many."""
    max_reassembly_bytes: int = 128 * MIB
    """Unfinished items of a connection together."""
    max_process_reassembly_bytes: int = 1024 * MIB
    """Unfinished items of all connections of this process together; beyond it, the connection that adds a fragment
    loses its oldest item. In reactive-streams-io, either limit ends the connection."""
    reassembly_timeout: float = 60.0
    """How long one item may take from its first fragment to its last."""
    max_metadata_bytes: int = 1 * MIB
    """Metadata of one item."""
    max_metadata_entries: int = 256
    """Entries of one composite metadata."""
    max_streams: int = 4_096
    """Streams that the peer may have open at once."""
    max_open_rate: int = 0
    """Streams that the peer may open in a second, with twice as many in a burst; 0: as many as it likes,
    because calls are streams and a fast client opens hundreds of thousands."""
    max_rapid_resets: int = 2_000
    """Streams that the peer may cancel within a second of opening them, per 30 s ("rapid reset")."""
    max_stray_frames: int = 100_000
    """Frames for streams that do not exist, per 30 s: some are races, many are an attack."""
    max_control_frames: int = 1_000
    """Answers to control frames waiting to be sent; beyond it we stop reading."""
    max_keepalive_bytes: int = 16 * KIB
    """Data of a KEEPALIVE, which we must send back."""
    max_output_bytes: int = 64 * MIB
    """Output that waits for a peer which does not read; beyond it the connection is given up."""
    output_high_bytes: int = 256 * KIB
    """Output waiting in a link at which producers pause: some write calls, so that the socket never runs dry;
    at four times as much we read no more requests either."""
    max_connections: int = 10_000
    """Connections of a server together: each costs a file descriptor and some 20 KiB. Links whose first message has
    not been read are counted apart, by the same limits: a full server still lets in who resumes a session."""
    max_connections_per_address: int = 100
    """Connections of a server from one address: one client needs one, and many hide behind one address."""
    max_refusals_per_address: int = 100
    """Links from one address, per 30 s, that begin with junk, or with a token to resume by that nobody has; then no
    more are taken until these are over, because whoever guesses needs many. 0: any number."""

    # reactive-streams-io.
    extensions: tuple[str, ...] = ()
    """Extensions to offer: "metadata" carries metadata beside requests and items, where the peer offers it too."""
    element_sizes: tuple[tuple[str, int], ...] = ()
    """Routes whose items all have one size, with that size: such items travel without a length, and packed."""
    max_string_bytes: int = 64 * KIB
    """One string of a message: a route with the request's data, the text of an error, the reason of a goodbye."""
    max_extensions: int = 1_024
    """Extensions that a hello may list."""
    max_open_elements: int = 64
    """Items of one stream of which some parts are here, and not all."""

    # Leases.
    lease: LeasePolicy | bool = False
    """Leases: a client asks for them with True, and a server grants them by a policy of `penstock.leases`, without
    which it refuses clients that ask. A client's policy is for the requests of its server; True grants them all."""
    lease_timeout: float = 10.0
    """How long a request waits for a lease, where one is needed; 0: it fails at once."""

    # Opening requests, on transports that begin with HTTP.
    origins: tuple[str, ...] = ()
    """Origins whose web pages may open connections over WebSocket or HTTP/2, such as "https://example.org"; "*": any. A
    server refuses all other pages with 403, because they would act for whoever looks at them. A client that names no
    origin, or the server's own address, is let in. HTTP/2 also refuses, with 415, any type but the protocol's."""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Names and values that a client adds to its opening request, such as Authorization; they are never shown."""

    # Resuming.
    resume: bool = False
    """A client asks for a session that outlives its links. A server that cannot resume refuses the set-up."""
    resume_timeout: float = 60.0
    """How long a session without a link waits for one: for a server, 0 means that it resumes no sessions."""
    resume_bytes: int = 64 * MIB
    """Sent output that a session keeps until the peer confirms it; what is older cannot be resumed from."""
    max_sessions: int = 1_000
    """Sessions without a link that a server keeps until their clients come back, River's included; beyond it, the one
    that has waited longest is ended."""
    resume_store: str = ""
    """A folder in which a server keeps them on disk, so that clients resume them after it was killed and started again;
    everything that is sent waits for the disk then. Empty: they die with the process."""

    # Time.
    connect_timeout: float = 10.0
    """From the first packet to an open link, with TLS and the transport's own handshake."""
    first_frame_timeout: float = 10.0
    """From an accepted link to a whole first frame."""
    acceptor_timeout: float = 10.0
    """How long a server's acceptor may think about a set-up."""
    keepalive_interval: float = 20.0
    """Between the KEEPALIVE frames of a client."""
    keepalive_lifetime: float = 90.0
    """Silence after which a peer is taken for dead."""
    close_grace: float = 5.0
    """How long calls in flight may finish when a connection or a server closes."""

    idle_timeout: float = 0.0
    """Silence after which a peer is taken for dead in protocols without KEEPALIVE (ReactiveSocket 0.0); 0: never."""

    # River.
    heartbeat_interval: float = 1.0
    """Between the heartbeats of a River server; both sides must agree on it."""
    heartbeats_until_dead: int = 2
    """Heartbeats that may fail to come before a River peer's link is given up."""
    handshake_timeout: float = 1.0
    """How long the first message of a River link, and its answer, may take."""
    session_grace: float = 5.0
    """How long a River session without a link waits for one."""
    max_unacked: int = 10_000
    """Messages that a River session keeps until its peer acknowledges them; items wait at half as many, and
    `resume_bytes` holds for their bytes. Beyond it the session is given up."""
    max_held_bytes: int = 64 * MIB
    """Items of a River session that nobody has asked for yet, and requests of a River client that has not answered our
    first heartbeat yet; beyond it we stop reading."""
    river_v1_1: bool = False
    """Serve River clients of version 1.1, too."""

    # Peers of other years.
    client_ids: str = "odd"
    """The stream ids of the client's side, ours or the peer's: "even" for peers of 2015 and 2016."""
    lenient: bool = False
    """Take a PAYLOAD that has data, and neither of its flags, for an item, as peers of 2016 send it."""
    length_counts_itself: bool = False
    """The 24-bit length before each frame counts its own three bytes, as some peers of 2017 send and expect it, over
    TCP, TLS and Unix. Nothing is resumed with them."""
    served_0_2: str = "reactivesocket-0.2"
    """What a SETUP of version 0.2 is read as: "rsocket-1.0" for peers that speak 1.0 under its candidate's number."""

    # Output.
    fragment_bytes: int = 1 * MIB
    """Items larger than this travel in fragments, so that they do not hold up the other streams for more than
    about a millisecond; not smaller, because some living peers cannot put fragments together."""
    metadata_mime: str = ""
    """What the metadata of this connection is; empty: what the protocol's routing needs."""
    data_mime: str = "application/octet-stream"
    """What the data of this connection is, as its set-up says; nobody but handlers interprets it."""

    @property
    def all_sessions(self) -> int:
        """How many sessions a server can have: those with a link, and those that wait for one."""
        return self.max_connections + self.max_sessions

    def __post_init__(self) -> None:
        at_least_1 = ("credit", "batch_rows", "max_streams", "max_frame_bytes", "output_high_bytes")
        for name in (*at_least_1, "heartbeats_until_dead", "max_held_bytes"):
            if getattr(self, name) < 1:
                raise LocalError(f"Settings.{name} is {getattr(self, name)}; it must be at least 1")
        if not 64 <= self.fragment_bytes <= self.max_frame_bytes - 64:
            raise LocalError(
                f"Settings.fragment_bytes is {self.fragment_bytes}; it must lie between 64 and max_frame_bytes - 64"
            )
        for name, choices in (("client_ids", ("odd", "even")), ("served_0_2", ("reactivesocket-0.2", "rsocket-1.0"))):
            if getattr(self, name) not in choices:
                raise LocalError(f"Settings.{name} is {getattr(self, name)!r}; it must be one of {', '.join(choices)}")
        if self.length_counts_itself and self.resume:
            raise LocalError("Settings.resume is set, and with length_counts_itself nothing is resumed; leave one out")
        if self.max_unacked < 2:
            raise LocalError(f"Settings.max_unacked is {self.max_unacked}; it must be at least 2")
        if self.heartbeat_interval < 0.001:
            raise LocalError(f"Settings.heartbeat_interval is {self.heartbeat_interval}; it must be at least 0.001")
        for name in ("keepalive_interval", "keepalive_lifetime"):
            # RSocket 1.0, SETUP: both are 31-bit milliseconds and more than 0.
            if not 0.001 <= getattr(self, name) <= 2_147_483:
                raise LocalError(
                    f"Settings.{name} is {getattr(self, name)}; it must lie between 0.001 and 2147483 seconds"
                )
        for route, size in self.element_sizes:
            if not 1 <= size <= self.max_frame_bytes:
                raise LocalError(
                    f"Settings.element_sizes has {size} for {route!r}; it must lie between 1 and max_frame_bytes"
                )
        for origin in self.origins:
            if not _ORIGIN.fullmatch(origin):
                raise LocalError(f"Settings.origins has {origin!r}; write https://host, with no path, or *")
        for name, value in self.headers:
            if not _HEADER_NAME.fullmatch(name):
                raise LocalError(f"Settings.headers has the name {name!r}; it must be letters, digits and hyphens")
            if not _HEADER_VALUE.fullmatch(value):
                raise LocalError(f"Settings.headers: the value of {name} must be printable ASCII on one line")


DEFAULT_SETTINGS = Settings()
