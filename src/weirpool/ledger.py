"""The ledger of a process: its connections, and the identities that they belong to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from .account import CONNECTION, Account, Group
from .settings import Settings

__all__ = ["LEDGER", "LIMITS", "Ledger", "LedgerSnapshot", "Unclaimed"]

LIMITS: Final = (
    "max_connection_bytes", "max_identity_bytes", "max_process_bytes", "max_process_reassembly_bytes", "unread_timeout"
)  # fmt: skip
"""The settings because of which a connection may have to release memory."""


@dataclass(frozen=True, slots=True)
class LedgerSnapshot:
    """The bytes that a process holds for its peers at one moment, as far as its connections have settled.

    Attributes:
        held_bytes: Everything: what was received and not consumed, and what was sent and not confirmed.
        peak_bytes: The maximum of `held_bytes` so far.
        limit_bytes: The maximum that is allowed: `Settings.max_process_bytes`; 0 without connections.
        incomplete_bytes: The part that only more input can complete: frames and fragments.
        retained_bytes: The part that was sent, and is kept until the peer has confirmed it.
        largest_identity_bytes: What the largest identity holds, by `Settings.max_identity_bytes`.
        largest_connection_bytes: What the largest connection holds, by `Settings.max_connection_bytes`.
        identities: The number of identities that have a connection.
        connections: The number of connections, including ended ones whose items are not consumed, or whose output is
            not sent.
        paused_connections: Those that are not read, because a limit is reached.
        payments: How often a connection had to release memory because of a limit.
        payments_by_limit: The same for each of `LIMITS`.

    """

    held_bytes: int
    peak_bytes: int
    limit_bytes: int
    incomplete_bytes: int
    retained_bytes: int
    largest_identity_bytes: int
    largest_connection_bytes: int
    identities: int
    connections: int
    paused_connections: int
    payments: int
    payments_by_limit: Mapping[str, int]


class Ledger:
    """The identities of a process, and their connections.

    Attributes:
        process: Counts all connections.
        identities: The identities that have a name, by their names.
        payments_by_limit: How often a connection had to release memory because of each of `LIMITS`.

    """

    __slots__ = ("_joined", "identities", "payments_by_limit", "process")

    def __init__(self) -> None:
        self.process = Group()
        self.identities: dict[str, Group] = {}
        self.payments_by_limit = dict.fromkeys(LIMITS, 0)
        # For each connection, the name of its identity, and the settings with its limits.
        self._joined: dict[Account, tuple[str, Settings]] = {}

    @property
    def payments(self) -> int:
        """How often a connection had to release memory because of a limit."""
        return sum(self.payments_by_limit.values())

    def join(self, connection: Account, identity: str, settings: Settings) -> None:
        """Make a connection part of an identity, instead of the one that it was part of.

        Args:
            connection: The account of the connection. It must :meth:`retire` at its end.
            identity: A principal or an address; empty: the connection is an identity of its own.
            settings: The limits.

        """
        self.leave(connection)
        group = self.identities.get(identity)
        if group is None:
            group = Group(self.process)
            self.process.members.add(group)
            if identity:
                self.identities[identity] = group
        group.members.add(connection)
        group.limited(settings.max_identity_bytes)
        self.process.limited(settings.max_process_bytes, settings.max_process_reassembly_bytes)
        connection.group = group
        self._joined[connection] = identity, settings
        group.count(connection)

    def retire(self, connection: Account, linked: bool = False) -> None:
        """Let a connection that has ended leave as soon as it holds nothing; call it again when its link is gone.

        Consumers may still have its items, and its link may have output to send. What its session has held is gone, and
        what its link has received: a closing link discards it.

        Args:
            connection: The account of the connection.
            linked: It still has a link, which may get more output.

        """
        connection.book_link(0)
        connection.book_unread(0)
        connection.book_incomplete(-connection.incomplete)
        connection.book_retained(connection.waiting - connection.retained)
        if connection.group is not None:
            # Others must not wait for what is gone until the rest is consumed.
            connection.group.count(connection)
        if linked or connection.held > 0:
            connection.paused = True
            connection.on_room = partial(self.retire, connection, linked)
        else:
            self.leave(connection)

    def leave(self, connection: Account) -> None:
        """Remove a connection. Does nothing if it has joined no identity."""
        group = connection.group
        if group is None:
            return
        identity, settings = self._joined.pop(connection)
        paid = False
        for each in (group, self.process):
            each.add(-connection.settled, -connection.settled_incomplete)
            paid |= each.left(connection)
        group.members.discard(connection)
        group.unlimited(settings.max_identity_bytes)
        self.process.unlimited(settings.max_process_bytes, settings.max_process_reassembly_bytes)
        if not group.members:
            self.process.members.discard(group)
            self.identities.pop(identity, None)
        connection.group = None
        connection.settled = connection.settled_incomplete = 0
        if paid:
            # It may not have been enough.
            group.paid()

    def snapshot(self) -> LedgerSnapshot:
        """Return what is held now. Any thread may call this."""
        process = self.process
        # Copied at once, because other threads may change them.
        identities, connections = list(process.members), list(self._joined)
        payments = self.payments_by_limit.copy()
        return LedgerSnapshot(
            held_bytes=process.held,
            peak_bytes=process.peak,
            limit_bytes=process.limit,
            incomplete_bytes=process.incomplete,
            retained_bytes=sum(each.retained for each in connections),
            largest_identity_bytes=max((each.held for each in identities), default=0),
            largest_connection_bytes=max((each.held for each in connections), default=0),
            identities=len(identities),
            connections=len(connections),
            paused_connections=sum(each.paused for each in connections),
            payments=sum(payments.values()),
            payments_by_limit=payments,
        )


LEDGER: Final = Ledger()
"""The accounts of this process."""


class Unclaimed:
    """Counts the bytes of a peer that belong to no session.

    A link holds some before its first message is complete, and a connection of many links may hold others.

    Args:
        identity: The peer's address.
        settings: The limits.
        drop: Called from any thread if the peer must release them, perhaps several times: close its connection.

    """

    __slots__ = ("_account", "_drop", "_identity", "_settings")

    def __init__(self, identity: str, settings: Settings, drop: Callable[[], None]) -> None:
        self._identity = identity
        self._settings = settings
        self._drop = drop
        self._account: Account | None = None

    def __del__(self) -> None:
        self.count(0)

    @property
    def size(self) -> int:
        """The bytes at the last call of `count`."""
        return 0 if self._account is None else self._account.incomplete

    def count(self, size: int) -> None:
        """Count `size` bytes, instead of the earlier number."""
        account = self._account
        if not size:
            if account is not None:
                self._account = None
                if account.indebted:
                    LEDGER.payments_by_limit[_limit_of(account)] += 1
                LEDGER.leave(account)
            return
        if account is None:
            # Most peers never hold anything here, so that only the others join.
            account = self._account = Account(self._settings.max_connection_bytes)
            account.on_debt = self._drop
            LEDGER.join(account, self._identity, self._settings)
        account.book_incomplete(size - account.incomplete)
        if account.settle() == CONNECTION:
            account.indebted = True
            self._drop()


def _limit_of(connection: Account) -> str:
    """Return the setting because of which a connection has to release memory."""
    group, process = connection.group, LEDGER.process
    if connection.room() < 0:
        return "max_connection_bytes"
    if process.held > process.limit:
        return "max_process_bytes"
    if group is not None and group.held > group.limit:
        return "max_identity_bytes"
    return "max_process_reassembly_bytes"
