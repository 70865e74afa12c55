"""The registry of protocols: one row each. It is the only place above the families that names one of them.

A row refers to functions of its family as ``module:name``; they are imported when they are first used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import Any, Final, Protocol

from .connection import Connection
from .errors import LocalError, UrlError
from .payload import Payload
from .session import ClientStart, Detector, ServerStart, Session, SessionLogs
from .settings import DEFAULT_SETTINGS, Settings

__all__ = [
    "EXAMPLE_URL",
    "PROTOCOLS",
    "VERSIONS",
    "Dump",
    "FrameReader",
    "ProtocolSpec",
    "TextForm",
    "carriers",
    "client_session",
    "data_mime",
    "detectors",
    "dump_of",
    "encodings",
    "fitting",
    "is_composite",
    "spec_of",
    "text_form",
]

FEATURES: Final = {
    "resume": "cannot resume sessions",
    "lease": "has no leases",
    "extensions": "has no extensions to offer",
    "element_sizes": "has no items without a length",
    "metadata_mime": "has no type of metadata",
    "client_ids": "has no odd and even stream ids",
    "lenient": "has no PAYLOAD frames",
    "length_counts_itself": "has no 24-bit length",
}
"""Settings that ask for what some protocols lack, and how each lacks it. A client is refused them; limits and times
that a protocol has no use for are ignored."""
COMPOSITE: Final = "message/x.rsocket.composite-metadata.v0"
"""Composite Metadata: entries, each with a type of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolSpec:
    """What code above the families knows of a protocol.

    Attributes:
        name: As URLs have it.
        client: ``client(start)`` returns a client's session; see :class:`~penstock.session.ClientStart`.
        detectors: ``detectors(start)`` returns what makes the detector of each new link of one server; see
            :class:`~penstock.session.ServerStart`.
        version: The protocol and its version, as ``penstock decode --dialect`` has it.
        dump: ``dump(version)`` returns what shows frames; see :class:`Dump`.
        prefix_bytes: The width of the length before each frame; 0: messages are pieces of a stream of bytes.
        passes_over: Sessions refuse a message that is too long by its ends: none of it is held, and the link goes on.
        options: The options of URLs that belong to the protocol, and not to a transport.
        honors: The settings in `FEATURES` that it can do what they ask for.
        resumes: With `Settings.resume`, sessions may outlive their links, and their clients.
        reconnects: Clients begin another session by themselves when one is over, as a retry budget allows.
        word_codes: Error codes are words; else they are numbers.
        malformed_code: The code of a refusal of a client whose metadata does not match its schema.
        subprotocol: Its name in the handshake of WebSocket; None: it has none.
        alpn: Its name in the handshake of QUIC.
        content_type: The type of its bodies over HTTP/2.
        metadata_mime: The type of a connection's metadata, unless its settings say otherwise; None: it has no type.
        data_mime: ``data_mime(options)`` returns the type of all data of a connection, from the options of its URL;
            empty: the settings say it.
        text_form: ``text_form(options)`` returns a :class:`TextForm`, or None where data travels as people write it;
            empty: it always does.
        carrier: ``carrier()`` returns what carries the context of a trace in requests; see
            :class:`penstock.observe.carriers.Carrier`; empty: nothing does.
        encodings: ``encodings()`` returns encodings of data that only this protocol has, by MIME type: the name, what
            has an `Encoder` and a `Decoder` as :mod:`msgspec.json` has, and what returns the offset at which data
            nests too deeply, or -1; empty: none.
        request_mime: ``request_mime(metadata_mime, metadata)`` returns the type that a request's metadata gives the
            data beside it, or None; empty: metadata never does.

    """

    name: str
    client: str
    detectors: str
    version: str
    dump: str
    prefix_bytes: int
    passes_over: bool = False
    options: frozenset[str] = frozenset()
    honors: frozenset[str] = frozenset()
    resumes: bool = False
    reconnects: bool = False
    word_codes: bool = False
    # RSocket 1.0, Error Codes: INVALID_SETUP.
    malformed_code: int | str = 0x001
    subprotocol: str | None = None
    alpn: str = "rsocket"
    content_type: str = "application/rsocket"
    metadata_mime: str | None = None
    data_mime: str = ""
    text_form: str = ""
    request_mime: str = ""
    carrier: str = ""
    encodings: str = ""


class TextForm(Protocol):
    """Data that travels in a form that people do not write, as JSON."""

    def from_json(self, data: bytes) -> bytes:
        """Return what travels. Raises LocalError if `data` is not JSON."""

    def to_json(self, body: bytes) -> bytes:
        """Return JSON. Raises FrameError if `body` is not of that form."""


class FrameReader(Protocol):
    """One direction of a connection, shown as lines."""

    def lines(self, data: bytes) -> list[str]:
        """Return a line for each frame that is whole with `data`."""


class Dump(Protocol):
    """The frames of a protocol for people and scripts.

    Attributes:
        framings: Bytes of the length that may stand before each frame, by the name of the framing.
        codecs: The ways to write the same message; empty: there is only one.
        unit: What the protocol calls a frame.
        apart: Frames can be read one by one; else what one means depends on those before it.

    """

    @property
    def framings(self) -> Mapping[str, int]: ...  # noqa: D102
    @property
    def codecs(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def unit(self) -> str: ...  # noqa: D102
    @property
    def apart(self) -> bool: ...  # noqa: D102

    def frames(self, data: bytes, prefix: int, codec: str) -> Iterator[dict[str, object]]:
        """Yield the frames in `data`, each as an object that JSON can hold.

        Args:
            data: The frames; one, if there is no length before it and they can be read one by one.
            prefix: Bytes of the length before each frame.
            codec: One of `codecs`; ignored where there are none.

        Raises:
            SessionError: Some bytes are no frame.

        """

    def encoder(self, prefix: int, codec: str) -> Callable[[Mapping[str, object]], bytes]:
        """Return what makes bytes of objects such as those of `frames`, in order; it raises LocalError."""

    def detected(self, head: bytes, settings: Settings) -> Dump | None:
        """Return the dump of the version that a client's first bytes are; None while that is unknown."""

    def reader(self, mime: str, messages: bool, secrets: bool) -> FrameReader:
        """Return what shows one direction of a connection.

        Args:
            mime: What the metadata of the connection is; empty: what the protocol makes it.
            messages: The transport of a client carries messages.
            secrets: Show credentials, tokens and ids of sessions, too.

        """


_RSOCKET: Final = ProtocolSpec(
    name="rsocket",
    client="rsocket.session:client",
    detectors="rsocket.accept:detectors",
    version="rsocket-1.0",
    dump="rsocket.dump:RSocketDump",
    prefix_bytes=3,
    resumes=True,
    subprotocol="rsocket",
    metadata_mime=COMPOSITE,
    request_mime="rsocket.extensions.composite:request_mime",
    carrier="rsocket.extensions.tracing:CompositeCarrier",
    honors=frozenset({"resume", "lease", "metadata_mime", "client_ids", "lenient", "length_counts_itself"}),
)
_REACTIVESOCKET_0_2: Final = replace(
    _RSOCKET,
    name="reactivesocket-0.2",
    version="reactivesocket-0.2",
    subprotocol=None,
    metadata_mime="text/plain",
    request_mime="",
    carrier="",
)
_REACTIVESOCKET_0_0: Final = replace(
    _REACTIVESOCKET_0_2,
    name="reactivesocket-0.0",
    version="reactivesocket-0.0",
    resumes=False,
    honors=_RSOCKET.honors - {"resume"},
)
_REACTIVE_STREAMS: Final = ProtocolSpec(
    name="reactive-streams",
    client="reactivestreams.session:client",
    detectors="reactivestreams.accept:detectors",
    version="reactive-streams-0",
    dump="wire.reactivestreams.dump:ReactiveStreamsDump",
    prefix_bytes=0,
    alpn="reactive-streams",
    content_type="application/reactive-streams",
    honors=frozenset({"extensions", "element_sizes"}),
)
_RIVER: Final = ProtocolSpec(
    name="river",
    client="river.connect:client",
    detectors="river.accept:detectors",
    version="river-2.0",
    dump="wire.river.dump:RiverDump",
    prefix_bytes=4,
    alpn="river",
    content_type="application/river",
    passes_over=True,
    options=frozenset({"codec", "server", "client"}),
    # River, On disconnect: a hard reconnect.
    reconnects=True,
    word_codes=True,
    # River, Handshake.
    malformed_code="MALFORMED_HANDSHAKE_META",
    data_mime="river.identity:data_mime",
    text_form="wire.river.values:json_form",
    carrier="river.tracing:RiverCarrier",
    encodings="wire.river.encodings:encodings",
    # Sessions outlive their links in any case.
    honors=frozenset({"resume"}),
)
_SPECS: Final = {
    spec.name: spec for spec in (_RSOCKET, _REACTIVESOCKET_0_2, _REACTIVESOCKET_0_0, _REACTIVE_STREAMS, _RIVER)
}
VERSIONS: Final = {spec.version: spec for spec in _SPECS.values()}
"""The rows by their versions."""
PROTOCOLS: Final = tuple(_SPECS)
"""The protocols that URLs may name. A listener on "rsocket" tells its two ancestors apart by itself."""
EXAMPLE_URL: Final = "rsocket+tcp://127.0.0.1:7878"
"""A URL as errors show one."""


def spec_of(protocol: str) -> ProtocolSpec:
    """Return the row of a protocol. Raises UrlError if it is unknown."""
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
    """Return the client's side of a new session, or of one that an earlier process left.

    Args:
        protocol: One of `PROTOCOLS`.
        settings: Limits and timeouts.
        setup: What to say to the server at set-up, where the protocol can.
        random: At least 16 bytes that nobody can guess, for sessions that need an id.
        checkpoint: What :meth:`penstock.session.Session.checkpoint` returned in an earlier process: the
            session resumes from there, as soon as a link is up.
        secret: What :attr:`penstock.session.Session.secret` was there.
        messages: The transport carries messages, each of which gets and loses a length of its own.
        options: Those of the URL.
        renew: Returns what to say from the second handshake of the session on, where the protocol has more than one;
            None: the same.

    Raises:
        UrlError: The protocol is unknown, or an option of its has no such value.
        LocalError: `checkpoint` is none of this protocol, or comes without its secret; or the protocol cannot do what
            the settings ask for.
        ResumeRejected: It cannot be told whether the server still has the session of `checkpoint`.

    """
    spec = spec_of(protocol)
    for name, lack in FEATURES.items():
        if name not in spec.honors and getattr(settings, name) != getattr(DEFAULT_SETTINGS, name):
            raise LocalError(f"{protocol} {lack}; leave Settings.{name} out")
    begin: Callable[[ClientStart], Session] = _load(spec.client)
    setup = setup or Payload()
    return begin(ClientStart(protocol, settings, setup, random, checkpoint, secret, messages, options or {}, renew))


def detectors(
    protocol: str,
    settings: Settings,
    logs: SessionLogs | None = None,
    *,
    messages: bool = False,
    options: Mapping[str, str] | None = None,
) -> Callable[[], Detector]:
    """Return what makes a detector for each new link of one server; they share the sessions to resume.

    Args:
        protocol: One of `PROTOCOLS`.
        settings: Limits and timeouts.
        logs: Where the sessions are kept for another process; None: they die with this one.
        messages: The transport carries messages, each of which gets and loses a length of its own.
        options: Those of the URL.

    Raises:
        UrlError: The protocol is unknown, or an option of its has no such value.

    """
    make: Callable[[ServerStart], Callable[[], Detector]] = _load(spec_of(protocol).detectors)
    return make(ServerStart(protocol, settings, logs, messages, options or {}))


def fitting(protocol: str, settings: Settings, options: Mapping[str, str]) -> Settings:
    """Return the settings of a connection: in some protocols the URL's options say what all data is.

    Raises UrlError if an option has no such value.
    """
    reference = spec_of(protocol).data_mime
    return replace(settings, data_mime=_load(reference)(options)) if reference else settings


def is_composite(protocol: str, settings: Settings) -> bool:
    """Whether the metadata of such a connection is composite, and so holds more than a route."""
    default = spec_of(protocol).metadata_mime
    return default is not None and (settings.metadata_mime or default) == COMPOSITE


def text_form(protocol: str, options: Mapping[str, str]) -> TextForm | None:
    """Return how people write the data of a connection, by the options of its URL; None: as it travels."""
    reference = spec_of(protocol).text_form
    form: TextForm | None = _load(reference)(options) if reference else None
    return form


def data_mime(connection: Connection, metadata: bytes | None) -> str:
    """Return the MIME type of a request's data: what its own metadata says, else the connection's.

    Raises FrameError if the metadata is not what the connection says it is.
    """
    reference = _SPECS[connection.protocol].request_mime
    if metadata is None or not reference:
        return connection.data_mime
    return _load(reference)(connection.metadata_mime, metadata) or connection.data_mime


def carriers() -> list[Any]:
    """Return what carries the context of a trace in the requests of each protocol that has room for it."""
    return [_load(spec.carrier)() for spec in _SPECS.values() if spec.carrier]


def encodings() -> dict[str, tuple[str, Any, Callable[[bytes], int]]]:
    """Return the encodings of data that only single protocols have, by MIME type."""
    return {mime: each for spec in _SPECS.values() if spec.encodings for mime, each in _load(spec.encodings)().items()}


def dump_of(version: str) -> Dump:
    """Return what shows the frames of a protocol's version. Raises LocalError if there is none of that name."""
    spec = VERSIONS.get(version)
    if spec is None:
        raise LocalError(f"there is no dialect {version!r}; use one of {', '.join(VERSIONS)}")
    found: Dump = _load(spec.dump)(version)
    return found


@cache
def _load(reference: str) -> Any:
    """Import what a row refers to."""
    module, _, name = reference.partition(":")
    return getattr(import_module(f".{module}", __package__), name)
