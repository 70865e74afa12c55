"""Live streams over RSocket and its relatives, into Python services and Apache Spark.

All public names are here. Each is imported on first use: ``import weirpool`` is fast, and an optional package is needed
only for the names that depend on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _build
from .lazy import lazily

_build.install()

if TYPE_CHECKING:
    from . import sync
    from ._build import ACCELERATED
    from .aio.balance import Balancer, balance
    from .aio.client import connect
    from .aio.handlers import Next, Request
    from .aio.handshake import handshake, rehandshake
    from .aio.items import Items
    from .aio.loop import run
    from .aio.metrics import Metrics, MetricsSnapshot
    from .aio.mounting import Mounted, asgi
    from .aio.peer import Peer
    from .aio.reconnect import Reconnect
    from .aio.server import Server, serve
    from .aio.service import Service
    from .aio.setup import Admitted, Setup, current_connection
    from .aio.streams import Stream
    from .aio.typed_peer import TypedPeer, typed
    from .aio.typed_stream import TypedStream
    from .audit.sent import audited
    from .bridging.bridge import bridge
    from .connection import Connection
    from .dedup.deduplicated import Deduplicated
    from .errors import (
        ApplicationError,
        Canceled,
        ConnectError,
        CreditExceeded,
        DataLost,
        DedupError,
        DiskFull,
        FrameError,
        Invalid,
        JournalCorrupt,
        JournalError,
        JournalLocked,
        JournalMismatch,
        JournalMissing,
        JournalUnavailable,
        KeepaliveTimeout,
        LeaseMissing,
        LimitExceeded,
        LinkError,
        LinkLost,
        LocalError,
        Mismatch,
        OwnerMissing,
        PeerClosed,
        ProtocolError,
        Rejected,
        ResumeRejected,
        SessionClosed,
        SessionError,
        SessionStoreError,
        SetupRejected,
        StoreError,
        StreamClosed,
        Undelivered,
        UnsupportedKind,
        UrlError,
        WeirpoolError,
    )
    from .frames.rows import rows
    from .journal import Journal
    from .kinds import Kind
    from .leases import AdaptiveLease, FixedLease, IntervalLease, Lease, LeaseUsage
    from .ledger import LedgerSnapshot
    from .payload import MetadataPush, Payload, PayloadRun
    from .receiving.receiver import Receiver
    from .reflection.client import describe
    from .reflection.description import Description, NotDescribed
    from .rsocket.extensions.authentication import Bearer, Custom, Simple
    from .rsocket.extensions.composite import Metadata
    from .rsocket.extensions.tracing import TraceContext
    from .schema.named import TypedError
    from .settings import Settings
    from .tap import Outcome, Refusal, RefusalCause, Tap

__version__ = "0.1.0"

__all__ = [
    "ACCELERATED",
    "AdaptiveLease",
    "Admitted",
    "ApplicationError",
    "Balancer",
    "Bearer",
    "Canceled",
    "ConnectError",
    "Connection",
    "CreditExceeded",
    "Custom",
    "DataLost",
    "DedupError",
    "Deduplicated",
    "Description",
    "DiskFull",
    "FixedLease",
    "FrameError",
    "IntervalLease",
    "Invalid",
    "Items",
    "Journal",
    "JournalCorrupt",
    "JournalError",
    "JournalLocked",
    "JournalMismatch",
    "JournalMissing",
    "JournalUnavailable",
    "KeepaliveTimeout",
    "Kind",
    "Lease",
    "LeaseMissing",
    "LeaseUsage",
    "LedgerSnapshot",
    "LimitExceeded",
    "LinkError",
    "LinkLost",
    "LocalError",
    "Metadata",
    "MetadataPush",
    "Metrics",
    "MetricsSnapshot",
    "Mismatch",
    "Mounted",
    "Next",
    "NotDescribed",
    "Outcome",
    "OwnerMissing",
    "Payload",
    "PayloadRun",
    "Peer",
    "PeerClosed",
    "ProtocolError",
    "Receiver",
    "Reconnect",
    "Refusal",
    "RefusalCause",
    "Rejected",
    "Request",
    "ResumeRejected",
    "Server",
    "Service",
    "SessionClosed",
    "SessionError",
    "SessionStoreError",
    "Settings",
    "Setup",
    "SetupRejected",
    "Simple",
    "StoreError",
    "Stream",
    "StreamClosed",
    "Tap",
    "TraceContext",
    "TypedError",
    "TypedPeer",
    "TypedStream",
    "Undelivered",
    "UnsupportedKind",
    "UrlError",
    "WeirpoolError",
    "asgi",
    "audited",
    "balance",
    "bridge",
    "connect",
    "current_connection",
    "describe",
    "handshake",
    "rehandshake",
    "rows",
    "run",
    "serve",
    "sync",
    "typed",
]

# The names that each module defines. All others are in `errors`.
_HOMES = {
    "_build": ("ACCELERATED",),
    "aio.balance": ("Balancer", "balance"),
    "aio.client": ("connect",),
    "aio.handlers": ("Next", "Request"),
    "aio.handshake": ("handshake", "rehandshake"),
    "aio.items": ("Items",),
    "aio.loop": ("run",),
    "aio.metrics": ("Metrics", "MetricsSnapshot"),
    "aio.mounting": ("Mounted", "asgi"),
    "aio.peer": ("Peer",),
    "aio.reconnect": ("Reconnect",),
    "aio.server": ("Server", "serve"),
    "aio.service": ("Service",),
    "aio.setup": ("Admitted", "Setup", "current_connection"),
    "aio.streams": ("Stream",),
    "aio.typed_peer": ("TypedPeer", "typed"),
    "aio.typed_stream": ("TypedStream",),
    "audit.sent": ("audited",),
    "bridging.bridge": ("bridge",),
    "connection": ("Connection",),
    "dedup.deduplicated": ("Deduplicated",),
    "frames.rows": ("rows",),
    "journal": ("Journal",),
    "kinds": ("Kind",),
    "leases": ("AdaptiveLease", "FixedLease", "IntervalLease", "Lease", "LeaseUsage"),
    "ledger": ("LedgerSnapshot",),
    "payload": ("MetadataPush", "Payload", "PayloadRun"),
    "receiving.receiver": ("Receiver",),
    "reflection.client": ("describe",),
    "reflection.description": ("Description", "NotDescribed"),
    "rsocket.extensions.authentication": ("Bearer", "Custom", "Simple"),
    "rsocket.extensions.composite": ("Metadata",),
    "rsocket.extensions.tracing": ("TraceContext",),
    "schema.named": ("TypedError",),
    "settings": ("Settings",),
    "sync": ("sync",),
    "tap": ("Outcome", "Refusal", "RefusalCause", "Tap"),
}
_MODULES = {name: module for module, names in _HOMES.items() for name in names}

__getattr__ = lazily(__name__, {name: _MODULES.get(name, "errors") for name in __all__})


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
