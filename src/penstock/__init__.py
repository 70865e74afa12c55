"""Live streams over RSocket and its relatives, into Python services and Apache Spark.

Every public name is here, and is imported when it is first used: ``import penstock`` is cheap, and the
optional packages are needed only by those who use what needs them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from . import _build

_build.install()

if TYPE_CHECKING:
    from ._build import ACCELERATED
    from .aio.balance import Balancer, balance
    from .aio.client import connect
    from .aio.handlers import Next, Request
    from .aio.handshake import handshake, rehandshake
    from .aio.items import Items
    from .aio.loop import run
    from .aio.metrics import Metrics, MetricsSnapshot
    from .aio.peer import Peer
    from .aio.reconnect import Reconnect
    from .aio.server import Server, serve
    from .aio.service import Service
    from .aio.setup import Admitted, Setup, current_connection
    from .aio.streams import Stream
    from .aio.typed_peer import TypedPeer, TypedStream, typed
    from .connection import Connection
    from .errors import (
        ApplicationError,
        Canceled,
        ConnectError,
        CreditExceeded,
        DataLost,
        DiskFull,
        FrameError,
        Invalid,
        JournalCorrupt,
        JournalError,
        JournalLocked,
        JournalMismatch,
        JournalMissing,
        KeepaliveTimeout,
        LeaseMissing,
        LimitExceeded,
        LinkError,
        LinkLost,
        LocalError,
        Mismatch,
        OwnerMissing,
        PeerClosed,
        PenstockError,
        ProtocolError,
        Rejected,
        ResumeRejected,
        SessionClosed,
        SessionError,
        SessionStoreError,
        SetupRejected,
        StreamClosed,
        UnsupportedKind,
        UrlError,
    )
    from .journal import Journal
    from .kinds import Kind
    from .leases import AdaptiveLease, FixedLease, IntervalLease, Lease, LeaseUsage
    from .payload import MetadataPush, Payload, PayloadRun
    from .rsocket.extensions.authentication import Bearer, Custom, Simple
    from .rsocket.extensions.composite import Metadata
    from .rsocket.extensions.tracing import TraceContext
    from .schema.named import TypedError
    from .settings import Settings
    from .tap import Outcome, Tap

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
    "KeepaliveTimeout",
    "Kind",
    "Lease",
    "LeaseMissing",
    "LeaseUsage",
    "LimitExceeded",
    "LinkError",
    "LinkLost",
    "LocalError",
    "Metadata",
    "MetadataPush",
    "Metrics",
    "MetricsSnapshot",
    "Mismatch",
    "Next",
    "Outcome",
    "OwnerMissing",
    "Payload",
    "PayloadRun",
    "Peer",
    "PeerClosed",
    "PenstockError",
    "ProtocolError",
    "Reconnect",
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
    "Stream",
    "StreamClosed",
    "Tap",
    "TraceContext",
    "TypedError",
    "TypedPeer",
    "TypedStream",
    "UnsupportedKind",
    "UrlError",
    "balance",
    "connect",
    "current_connection",
    "handshake",
    "rehandshake",
    "run",
    "serve",
    "typed",
]

# Where each name lives; what is not listed here is an error.
_MODULES = {
    "ACCELERATED": "_build",
    "AdaptiveLease": "leases",
    "Admitted": "aio.setup",
    "Balancer": "aio.balance",
    "Bearer": "rsocket.extensions.authentication",
    "Connection": "connection",
    "Custom": "rsocket.extensions.authentication",
    "FixedLease": "leases",
    "IntervalLease": "leases",
    "Items": "aio.items",
    "Journal": "journal",
    "Kind": "kinds",
    "Lease": "leases",
    "LeaseUsage": "leases",
    "Metadata": "rsocket.extensions.composite",
    "MetadataPush": "payload",
    "Metrics": "aio.metrics",
    "MetricsSnapshot": "aio.metrics",
    "Next": "aio.handlers",
    "Outcome": "tap",
    "Payload": "payload",
    "PayloadRun": "payload",
    "Peer": "aio.peer",
    "Reconnect": "aio.reconnect",
    "Request": "aio.handlers",
    "Server": "aio.server",
    "Service": "aio.service",
    "Settings": "settings",
    "Setup": "aio.setup",
    "Simple": "rsocket.extensions.authentication",
    "Stream": "aio.streams",
    "Tap": "tap",
    "TraceContext": "rsocket.extensions.tracing",
    "TypedError": "schema.named",
    "TypedPeer": "aio.typed_peer",
    "TypedStream": "aio.typed_peer",
    "balance": "aio.balance",
    "connect": "aio.client",
    "current_connection": "aio.setup",
    "handshake": "aio.handshake",
    "rehandshake": "aio.handshake",
    "run": "aio.loop",
    "serve": "aio.server",
    "typed": "aio.typed_peer",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f".{_MODULES.get(name, 'errors')}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
