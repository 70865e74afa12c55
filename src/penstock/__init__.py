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
    from .kinds import Kind
    from .payload import Payload, PayloadRun
    from .settings import Settings

__version__ = "0.1.0"

__all__ = [
    "ACCELERATED",
    "ApplicationError",
    "Canceled",
    "ConnectError",
    "CreditExceeded",
    "DataLost",
    "DiskFull",
    "FrameError",
    "Invalid",
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
    "PeerClosed",
    "PenstockError",
    "ProtocolError",
    "Rejected",
    "ResumeRejected",
    "SessionClosed",
    "SessionError",
    "Settings",
    "SetupRejected",
    "StreamClosed",
    "UnsupportedKind",
    "UrlError",
]

# Where each name lives; what is not listed here is an error.
_MODULES = {
    "ACCELERATED": "_build",
    "Kind": "kinds",
    "Payload": "payload",
    "PayloadRun": "payload",
    "Settings": "settings",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f".{_MODULES.get(name, 'errors')}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
