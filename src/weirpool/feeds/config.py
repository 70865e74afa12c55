"""The configuration of one feed, as a table of a TOML file describes it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from ..archive.options import SealOptions
from ..errors import LocalError
from ..journal import DEFAULT_BUDGET_BYTES
from ..journal.layout import check_name
from ..texts import concealed
from ..urls import parse_url
from .retry import Retry
from .values import Reference, Seconds, Size, Text

__all__ = ["Auth", "FeedConfig", "GroupConfig", "Setup", "Storage", "Tls"]

TEMPLATE: Final = re.compile(r"\{([^{}]*)\}")
UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]")
"""Characters that the name of a log cannot have."""


class Auth(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Credentials: a token; a user and a password; or a place that has ``bearer:TOKEN`` or ``simple:USER:PASSWORD``."""

    bearer: Text | None = None
    user: str | None = None
    password: Text | None = None
    env: str | None = None
    file: str | None = None

    __repr__ = concealed

    def __post_init__(self) -> None:
        if (self.user is None) != (self.password is None):
            raise ValueError("user and password belong together")
        if [self.bearer, self.user, self.env, self.file].count(None) != 3:
            raise ValueError("write bearer, or user and password, or env or file for the place of both")


class Setup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the set-up of a feed's connection contains; over River, the metadata of the handshake."""

    data: Text = ""
    metadata: Text | None = None
    auth: Auth | None = None
    """Credentials of the connection, for protocols with composite metadata."""

    __repr__ = concealed


class Tls(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Files of certificates, and whom to trust."""

    cafile: str | None = None
    cert: str | None = None
    key: str | None = None
    insecure: bool = False

    def __post_init__(self) -> None:
        if self.key is not None and self.cert is None:
            raise ValueError("key needs the certificate; add cert")


class Storage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where sealed segments go, when they are sealed, and how much history to keep."""

    store: str | None = None
    seal_age: Seconds | None = None
    seal_bytes: Size | None = None
    keep: Seconds | None = None
    keep_bytes: Size | None = None
    durable: Literal["local", "remote"] = "local"

    def __post_init__(self) -> None:
        try:
            SealOptions(store=self.store)
        except LocalError as error:
            raise ValueError(f"store: {error}") from None
        if self.durable == "remote" and self.store is None:
            raise ValueError('durable = "remote" needs the store; add store')


class GroupConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The collectors that stand in for each other: all of them have this table, and the same feeds."""

    name: str
    key: Reference
    """The place of the key that encrypts the secrets of its sessions."""
    patience: Seconds = Seconds(10.0)
    """Seconds without a sign of the owner after which another collector takes over."""

    def __post_init__(self) -> None:
        check_name(self.name, "group")
        if self.patience < 1:
            raise ValueError(f"patience is {self.patience:g} s; it must be at least 1 s")


class FeedConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One feed: a stream, and the log that it is collected into.

    Two equal configurations describe the same feed, which need not be restarted.
    """

    url: str
    route: str
    journal: str
    """The journal's folder."""
    source: str = "{name}"
    """The log's name in the journal: a text with {name}, {route} and {host}."""
    data: Text = ""
    metadata: Text | None = None
    auth: Auth | None = None
    """Credentials of the request."""
    setup: Setup | None = None
    headers: dict[str, Text] = {}
    tls: Tls = Tls()
    settings: dict[str, Any] = {}
    """Fields of `weirpool.Settings`."""
    budget: Size = Size(DEFAULT_BUDGET_BYTES)
    credit: int | None = None
    linger: Seconds | None = None
    """Seconds between two batches of a slow stream."""
    retry: Retry = Retry()
    storage: Storage | None = None
    """How the log is sealed; None: not at all."""
    accept_loss: bool = False
    enabled: bool = True

    __repr__ = concealed

    def __post_init__(self) -> None:
        if self.credit is not None and self.credit < 1:
            raise ValueError(f"credit is {self.credit}; it must be at least 1")

    def source_of(self, name: str) -> str:
        """Return the name of the log of the feed `name`; `LocalError` if it is not valid."""
        parts = {"name": name, "route": self.route, "host": parse_url(self.url).host}

        def part(match: re.Match[str]) -> str:
            if match[1] not in parts:
                raise ValueError(f"source: {match[0]} is not known; use {{name}}, {{route}} and {{host}}")
            return UNSAFE.sub("-", parts[match[1]])

        return check_name(TEMPLATE.sub(part, self.source), "source")

    def at(self, folder: Path) -> FeedConfig:
        """Return this configuration with paths that start from `folder` instead of the working directory."""

        def placed(path: str | None) -> str | None:
            return path if path is None or "://" in path else str(folder / path)

        tls = Tls(placed(self.tls.cafile), placed(self.tls.cert), placed(self.tls.key), self.tls.insecure)
        storage = self.storage and msgspec.structs.replace(self.storage, store=placed(self.storage.store))
        return msgspec.structs.replace(self, journal=placed(self.journal), tls=tls, storage=storage)
