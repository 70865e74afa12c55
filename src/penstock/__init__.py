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
    from .aio.loop import run
    from .aio.peer import Peer
    from .aio.reconnect import Reconnect
    from .aio.server import Server, serve
    from .aio.service import Service
    from .aio.streams import Items, Stream
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
        KeepaliveTimeout,
        LimitExceeded,
        LinkError,
        LinkLost,
        LocalError,
        PeerClosed,
        PenstockError,
        ProtocolError,
        Rejected,
        ResumeRejected,
        SessionClosed,
        SessionError,
        SetupRejected,
        StreamClosed,
        UnsupportedKind,
        UrlError,
    )
    from .journal import Journal
    from .kinds import Kind
    from .payload import Payload, PayloadRun
    from .settings import Settings

__version__ = "0.1.0"

__all__ = [
    "ACCELERATED",
    "ApplicationError",
    "Balancer",
    "Canceled",
    "ConnectError",
    "CreditExceeded",
    "DataLost",
    "DiskFull",
    "FrameError",
    "Invalid",
    "Items",
    "Journal",
    "JournalCorrupt",
    "JournalError",
    "JournalLocked",
    "KeepaliveTimeout",
    "Kind",
    "LimitExceeded",
    "LinkError",
    "LinkLost",
    "LocalError",
    "Payload",
    "PayloadRun",
    "Peer",
    "PeerClosed",
    "PenstockError",
    "ProtocolError",
    "Reconnect",
    "Rejected",
    "ResumeRejected",
    "Server",
    "Service",
    "SessionClosed",
    "SessionError",
    "Settings",
    "SetupRejected",
    "Stream",
    "StreamClosed",
    "UnsupportedKind",
    "UrlError",
    "balance",
    "connect",
    "run",
    "serve",
]

# Where each name lives; what is not listed here is an error.
_MODULES = {
    "ACCELERATED": "_build",
    "Balancer": "aio.balance",
    "Items": "aio.streams",
    "Journal": "journal",
    "Kind": "kinds",
    "Payload": "payload",
    "PayloadRun": "payload",
    "Peer": "aio.peer",
    "Reconnect": "aio.reconnect",
    "Server": "aio.server",
    "Service": "aio.service",
    "Settings": "settings",
    "Stream": "aio.streams",
    "balance": "aio.balance",
    "connect": "aio.client",
    "run": "aio.loop",
    "serve": "aio.server",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f".{_MODULES.get(name, 'errors')}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
