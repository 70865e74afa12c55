"""The registry of protocols, with one row for each. Above the families, only this module names protocols.

A row refers to functions of its family as ``module:name``, which are imported on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import import_module
from typing import Any, Final

from .connection import Connection
from .dumps import Dump, FrameReader, TextForm
from .errors import LocalError, UrlError
from .kinds import Kind
from .payload import Payload
from .session import ClientStart, Detector, ServerStart, Session, SessionLogs
from .settings import DEFAULT_SETTINGS, ITEMS_IN_PARTS, SESSIONS, Settings

__all__ = [
    "COMPOSITE",
    "EXAMPLE_URL",
    "EXAMPLE_URLS",
    "FEATURES",
    "PROTOCOLS",
    "VERSIONS",
    "Dump",
    "FrameReader",
    "ProtocolSpec",
    "TextForm",
    "carriers",
    "client_session",
    "connection_settings",
    "data_mime",
    "detectors",
    "dump_of",
    "encodings",
    "is_composite",
    "item_fields",
    "sent_data",
    "spec_of",
    "specific",
    "text_form",
    "uses",
]

FEATURES: Final = {
    "resume": "cannot resume sessions",
    "lease": "has no leases",
    "extensions": "has no extensions",
    "element_sizes": "cannot send items without a length",
    "metadata_mime": "has no MIME type for metadata",
    "client_ids": "has no odd and even stream ids",
    "lenient": "has no PAYLOAD frames",
    "strict": "has no strict set-ups",
    "length_counts_itself": "has no 24-bit length",
}
"""Settings that only some protocols support, and what the others lack. A session with such a setting is an error. See
`specific` for all settings that only some protocols use."""
COMPOSITE: Final = "message/x.rsocket.composite-metadata.v0"
"""Composite Metadata: entries, each with its own MIME type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolSpec:
    """The properties of a protocol that code above the families needs.

    Attributes:
        name: The protocol's name in URLs.
        client: ``client(start)`` returns a client's session; see :class:`~weirpool.session.ClientStart`.
        detectors: ``detectors(start)`` returns what creates a server's detectors; see `weirpool.session.ServerStart`.
        version: The protocol and its version, as in ``weirpool decode --dialect``.
        dump: ``dump(version)`` returns the :class:`Dump` of its frames.
        prefix_bytes: The width of the length before each frame; 0 if frames are not delimited by a length.
        kinds: The kinds of interaction that it has.
        dotted_routes: Each route is ``service.procedure``.
        max_request: The maximum number of items that one request may ask for.
        skips_oversized: Sessions reject a message that is too long without storing it, and the link continues.
        options: The URL options of the protocol, as opposed to those of a transport.
        supports: The settings that it uses, of those that not all protocols use.
        served: More of these, which only its servers use.
        resumes: With `Settings.resume`, sessions may outlive their links and their client's process.
        answers: A server answers the set-up of a session before it handles requests, without being asked.
        reconnects: A client starts a new session when its session ends, as far as a retry budget allows.
        string_codes: Error codes are strings; otherwise numbers.
        malformed_code: The error code for a client whose metadata does not match its schema.
        subprotocol: Its WebSocket subprotocol; None if it has none.
        alpn: Its ALPN name for QUIC.
        content_type: The content type of its bodies over HTTP/2.
        metadata_mime: The default MIME type of a connection's metadata; None if metadata has no type.
        data_mime: ``data_mime(options)`` returns the MIME type of data, from a URL's options; empty: the settings do.
        text_form: ``text_form(options)`` returns a :class:`TextForm`, or None if data is text; empty if it always is.
        sent_data: ``sent_data(data_mime, data)`` returns an item's data as a server sends it; empty: it is as written.
        carrier: ``carrier()`` returns a :class:`~weirpool.observe.carriers.Carrier`; empty if there is none.
        encodings: ``encodings()`` returns data encodings of this protocol only, by MIME type: the name, a function that
            returns the bytes of a value, and a :class:`~weirpool.values.decoder.Reader`; empty if there are none.
        request_mime: ``request_mime(metadata_mime, metadata)`` returns the MIME type that a request's metadata declares
            for its data, or None; empty if metadata never does.

    """

    name: str
    client: str
    detectors: str
    version: str
    dump: str
    prefix_bytes: int
    kinds: frozenset[Kind] = frozenset(Kind)
    dotted_routes: bool = False
    # RSocket 1.0, REQUEST_N Frame: 31 bits.
    max_request: int = 0x7FFF_FFFF
    skips_oversized: bool = False
    options: frozenset[str] = frozenset()
    supports: frozenset[str] = frozenset()
    served: frozenset[str] = frozenset()
    resumes: bool = False
    answers: bool = False
    reconnects: bool = False
    string_codes: bool = False
    # RSocket 1.0, Error Codes: INVALID_SETUP.
    malformed_code: int | str = 0x001
    subprotocol: str | None = None
    alpn: str = "rsocket"
    content_type: str = "application/rsocket"
    metadata_mime: str | None = None
    data_mime: str = ""
    text_form: str = ""
    sent_data: str = ""
    request_mime: str = ""
    carrier: str = ""
    encodings: str = ""


_RSOCKET: Final = ProtocolSpec(
    name="rsocket",
    client="rsocket.connect:client",
    detectors="rsocket.accept:detectors",
    version="rsocket-1.0",
    dump="rsocket.dump:RSocketDump",
    prefix_bytes=3,
    resumes=True,
    subprotocol="rsocket",
    metadata_mime=COMPOSITE,
    request_mime="rsocket.extensions.composite:request_mime",
    carrier="rsocket.extensions.tracing:CompositeCarrier",
    supports=ITEMS_IN_PARTS
    | SESSIONS
    | frozenset(
        (
            "client_ids data_mime first_frame_timeout keepalive_interval keepalive_lifetime lease "
            "lease_timeout length_counts_itself lenient max_keepalive_bytes max_metadata_bytes "
            "max_metadata_entries max_open_rate max_setup_frame_bytes metadata_mime"
        ).split()
    ),
    # Its servers also detect its predecessors.
    served=frozenset({"idle_timeout", "served_0_2"}),
)
_REACTIVESOCKET_0_2: Final = replace(
    _RSOCKET,
    name="reactivesocket-0.2",
    version="reactivesocket-0.2",
    subprotocol=None,
    metadata_mime="text/plain",
    request_mime="",
    carrier="",
    supports=_RSOCKET.supports | {"strict"},
    served=frozenset(),
)
_REACTIVESOCKET_0_0: Final = replace(
    _REACTIVESOCKET_0_2,
    name="reactivesocket-0.0",
    version="reactivesocket-0.0",
    kinds=frozenset({Kind.CALL, Kind.FIRE, Kind.STREAM}),
    resumes=False,
    supports=_RSOCKET.supports - SESSIONS | {"idle_timeout"},
)
_REACTIVE_STREAMS: Final = ProtocolSpec(
    name="reactive-streams",
    client="reactivestreams.session:client",
    detectors="reactivestreams.accept:detectors",
    version="reactive-streams-0",
    dump="wire.reactivestreams.dump:ReactiveStreamsDump",
    prefix_bytes=0,
    kinds=frozenset({Kind.CALL, Kind.STREAM}),
    # docs/reference/rs-0.md, Encoding: a varint.
    max_request=(1 << 63) - 1,
    alpn="reactive-streams",
    content_type="application/reactive-streams",
    supports=ITEMS_IN_PARTS
    | frozenset(
        (
            "data_mime element_sizes extensions first_frame_timeout idle_timeout max_extensions "
            "max_metadata_bytes max_open_elements max_open_rate max_string_bytes"
        ).split()
    ),
)
_RIVER: Final = ProtocolSpec(
    name="river",
    client="river.connect:client",
    detectors="river.accept:detectors",
    version="river-2.0",
    dump="wire.river.dump:RiverDump",
    prefix_bytes=4,
    kinds=frozenset(Kind) - {Kind.FIRE},
    dotted_routes=True,
    alpn="river",
    content_type="application/river",
    skips_oversized=True,
    options=frozenset({"codec", "server", "client"}),
    # River, Handshake.
    answers=True,
    # River, On disconnect: a hard reconnect.
    reconnects=True,
    string_codes=True,
    malformed_code="MALFORMED_HANDSHAKE_META",  # River, Handshake.
    data_mime="river.identity:data_mime",
    text_form="wire.river.values:json_form",
    sent_data="wire.river.codec:sent_data",
    carrier="river.tracing:RiverCarrier",
    encodings="wire.river.encodings:encodings",
    # Sessions always outlive their links.
    supports=SESSIONS
    | frozenset(
        (
            "close_subscriptions handshake_timeout heartbeat_interval heartbeats_until_dead max_held_bytes "
            "max_setup_frame_bytes max_unacked session_grace"
        ).split()
    ),
    served=frozenset({"river_v1_1"}),
)
_SPECS: Final = {
    spec.name: spec for spec in (_RSOCKET, _REACTIVESOCKET_0_2, _REACTIVESOCKET_0_0, _REACTIVE_STREAMS, _RIVER)
}
VERSIONS: Final = {spec.version: spec for spec in _SPECS.values()}
"""The rows by version."""
PROTOCOLS: Final = tuple(_SPECS)
"""The protocols of URLs. A listener on "rsocket" also detects its two predecessors."""
EXAMPLE_URL: Final = "rsocket+tcp://127.0.0.1:7878"
EXAMPLE_URLS: Final = (EXAMPLE_URL, "river+tcp://127.0.0.1:7879", "rsocket+ws://127.0.0.1:7877")
"""An example for error messages, and where a service to try listens."""


def spec_of(protocol: str) -> ProtocolSpec:
    """Return the row of a protocol. Raises UrlError if the protocol is unknown."""
    spec = _SPECS.get(protocol)
    if spec is None:
        raise UrlError(f"unknown protocol {protocol!r}; known are: {', '.join(PROTOCOLS)}")
    return spec


def client_session(
    protocol: str,
    settings: Settings,
    *,
    setup: Payload | None = None,
    random: bytes = b"",
    checkpoint: bytes | None = None,
    secret: bytes = b"",
    messages: bool = False,
    options: Mapping[str, str] | None = None,
    renew: Callable[[], Payload] | None = None,
) -> Session:
    """Return the client side of a new session, or of a session of an earlier process.

    Args:
        protocol: One of `PROTOCOLS`.
        settings: Limits and timeouts.
        setup: The payload of the set-up, if the protocol supports one.
        random: At least 16 random bytes, for sessions that need an unpredictable id.
        checkpoint: The result of :meth:`weirpool.session.Session.checkpoint` in an earlier process, to resume from it
            as soon as a link is up.
        secret: The value of :attr:`weirpool.session.Session.secret` in that process.
        messages: The transport carries messages, which the session reads and writes with a length prefix.
        options: The options of the URL.
        renew: Returns the payload for the second and later handshakes of the session, if the protocol has them; None to
            repeat `setup`.

    Raises:
        UrlError: The protocol is unknown, or one of its options has an invalid value.
        LocalError: `checkpoint` is not a checkpoint of this protocol, or `secret` is missing; or the protocol does not
            support one of the settings.
        ResumeRejected: `checkpoint` does not tell whether the server still has the session.

    """
    spec = spec_of(protocol)
    for name, lack in FEATURES.items():
        if name not in spec.supports and getattr(settings, name) != getattr(DEFAULT_SETTINGS, name):
            raise LocalError(f"{protocol} {lack}; leave Settings.{name} out")
    start: Callable[[ClientStart], Session] = _load(spec.client)
    setup = setup or Payload()
    return start(ClientStart(protocol, settings, setup, random, checkpoint, secret, messages, options or {}, renew))


def specific() -> frozenset[str]:
    """Return the settings that only some protocols use."""
    return frozenset().union(*(spec.supports | spec.served for spec in _SPECS.values()))


def uses(protocol: str, name: str, serving: bool) -> bool:
    """Return whether a client, or a server, of a protocol uses one of the settings in `specific`."""
    spec = spec_of(protocol)
    return name in spec.supports or (serving and name in spec.served)


def detectors(
    protocol: str,
    settings: Settings,
    logs: SessionLogs | None = None,
    *,
    messages: bool = False,
    exclusive: bool = False,
    options: Mapping[str, str] | None = None,
) -> Callable[[], Detector]:
    """Return a function that creates a detector for each new link of one server.

    The detectors share the sessions that clients may resume.

    Args:
        protocol: One of `PROTOCOLS`.
        settings: Limits and timeouts.
        logs: The logs of sessions on disk; None to keep sessions in memory only.
        messages: The transport carries messages, which sessions read and write with a length prefix.
        exclusive: The transport has named the protocol, so that no other client gets this far, and any bytes may be
            answered.
        options: The options of the URL.

    Raises:
        UrlError: The protocol is unknown, or one of its options has an invalid value.

    """
    make: Callable[[ServerStart], Callable[[], Detector]] = _load(spec_of(protocol).detectors)
    return make(ServerStart(protocol, settings, logs, messages, exclusive, options or {}))


def connection_settings(protocol: str, settings: Settings, options: Mapping[str, str]) -> Settings:
    """Return `settings`, with the MIME type of data from the URL's options if the protocol determines it by them.

    Raises UrlError if an option has an invalid value.
    """
    reference = spec_of(protocol).data_mime
    return replace(settings, data_mime=_load(reference)(options)) if reference else settings


def is_composite(protocol: str, settings: Settings) -> bool:
    """Return True if the metadata of such a connection is composite."""
    default = spec_of(protocol).metadata_mime
    return default is not None and (settings.metadata_mime or default) == COMPOSITE


def text_form(protocol: str, options: Mapping[str, str]) -> TextForm | None:
    """Return the text form of a connection's data, by the options of its URL; None if data is sent as written."""
    reference = spec_of(protocol).text_form
    form: TextForm | None = _load(reference)(options) if reference else None
    return form


def data_mime(connection: Connection, metadata: bytes | None) -> str:
    """Return the MIME type of a request's data: from its metadata, otherwise the connection's.

    Raises FrameError if the metadata does not have the MIME type of the connection's metadata.
    """
    reference = _SPECS[connection.protocol].request_mime
    if metadata is None or not reference:
        return connection.data_mime
    return _load(reference)(connection.metadata_mime, metadata) or connection.data_mime


def sent_data(connection: Connection) -> Callable[[bytes], bytes] | None:
    """Return a function that returns an item's data as a server sends it; None if that is as written."""
    reference = _SPECS[connection.protocol].sent_data
    return partial(_load(reference), connection.data_mime) if reference else None


def carriers() -> list[Any]:
    """Return the trace context carriers of all protocols that have one."""
    return [_load(spec.carrier)() for spec in _SPECS.values() if spec.carrier]


def item_fields() -> Callable[[bytes], dict[str, str]]:
    """Return a function that returns the fields of a trace in the metadata of an item, if that is composite."""
    carrier = next(spec.carrier for spec in _SPECS.values() if spec.metadata_mime == COMPOSITE and spec.carrier)
    fields: Callable[[bytes], dict[str, str]] = _load(carrier)().fields
    return fields


def encodings() -> dict[str, tuple[str, Callable[[Any], bytes], Any]]:
    """Return the data encodings that belong to a single protocol, by MIME type; see `ProtocolSpec.encodings`."""
    return {mime: each for spec in _SPECS.values() if spec.encodings for mime, each in _load(spec.encodings)().items()}


def dump_of(version: str) -> Dump:
    """Return the dump of a protocol's version. Raises LocalError if the version is unknown."""
    spec = VERSIONS.get(version)
    if spec is None:
        raise LocalError(f"there is no dialect {version!r}; use one of {', '.join(VERSIONS)}")
    found: Dump = _load(spec.dump)(version)
    return found


@cache
def _load(reference: str) -> Any:
    """Import the object that a row refers to."""
    module, _, name = reference.partition(":")
    return getattr(import_module(f".{module}", __package__), name)
