"""Accounts of the bytes that are held for a peer: by stream, connection, identity and process.

Streams and connections are counted at once. The identity and the process of a connection are counted when it settles,
once in each batch. When they hold too much, their largest connection pays, and not the one that receives the next byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

__all__ = ["CONNECTION", "FINE", "IDENTITY", "ITEM_BYTES", "PROCESS", "UNLIMITED", "Account", "Group"]

ITEM_BYTES: Final = 96
"""Memory that an item takes in addition to its bytes: its objects, and its place in a list."""
UNLIMITED: Final = 1 << 62
"""A limit that is never reached."""
SLACK: Final = 65_536
"""Released bytes after which a connection settles without waiting for a batch, because none may follow. It also does so
when it holds nothing any more."""

# The results of `Account.settle`.
FINE: Final = 0
CONNECTION: Final = 1
IDENTITY: Final = 2
PROCESS: Final = 3


def _ignore() -> None:
    """Do nothing."""


class Account:
    """The bytes that are held for a stream, or for all of a connection.

    An account belongs to the thread of its connection.

    Args:
        limit: The bytes that it should not exceed.
        parent: The account of the connection, for a stream; None for a connection.

    Attributes:
        held: The bytes that it holds.
        incomplete: Of a connection: the part of `held` that nobody can consume before more arrives.
        of_link: Of a connection: the part of `incomplete` that its link holds.
        unread: Of a connection: the part of `held` that its link holds, because reading is paused.
        waiting: Of a connection: the part of `retained` that waits in its link, because the peer does not read.
        retained: Of a connection: the part of `held` that was sent, and that the peer has not confirmed. It has a limit
            of its own, so that of the connection does not apply to it.
        unlinked_since: Of a connection: when it has lost its link; 0: it has one, or is new.
        largest: Of a stream: the size of its largest items, which decays.
        group: Of a connection: its identity; None before it has joined one.
        settled: Of a connection: the part of `held` that its identity has counted.
        settled_incomplete: Of a connection: the part of `incomplete` that its identity has counted.
        paused: Of a connection: whether the last call of `settle` has found a limit exceeded.
        indebted: Of a connection: whether it was told to pay and has not done so.
        on_room: Called from any thread when the connection should settle again: it is paused and there may be room, or
            others need what it has released.
        on_debt: Called from any thread when the connection must release what its largest stream holds, and again as a
            reminder.

    """

    __slots__ = (
        "group", "held", "incomplete", "indebted", "largest", "limit", "of_link", "on_debt", "on_room", "parent",
        "paused", "retained", "settled", "settled_incomplete", "unlinked_since", "unread", "waiting"
    )  # fmt: skip

    def __init__(self, limit: int, parent: Account | None = None) -> None:
        self.limit = limit
        self.parent = parent
        self.held = 0
        self.incomplete = self.of_link = self.retained = self.unread = self.waiting = 0
        self.unlinked_since = 0.0
        self.largest = 0
        self.group: Group | None = None
        self.settled = self.settled_incomplete = 0
        self.paused = False
        self.indebted = False
        self.on_room: Callable[[], None] = _ignore
        self.on_debt: Callable[[], None] = _ignore

    def __del__(self) -> None:
        # The buffer of a stream may be dropped with its items.
        self.close()

    def book(self, size: int) -> None:
        """Count `size` bytes that have arrived."""
        self.held += size
        connection = self.parent
        if connection is not None:
            connection.held += size

    def release(self, size: int) -> None:
        """Uncount `size` bytes that were consumed or dropped."""
        self.held -= size
        connection = self.parent
        if connection is None:
            connection = self
        else:
            connection.held -= size
        if connection.held == 0 or connection.paused or connection.settled - connection.held > SLACK:
            connection.released()

    def close(self) -> None:
        """Uncount all that a stream holds, because it was dropped."""
        if self.held and self.parent is not None:
            self.release(self.held)

    def grantable(self, count: int, expected: int) -> int:
        """Return how many items a stream may request now. If it is less than `count`, ask again after a release.

        Args:
            count: The items that its window allows.
            expected: The items that were requested and have not arrived.

        """
        largest = self.largest
        if largest == 0:
            return count
        # One large item among small ones must not make the window small for ever.
        self.largest -= largest >> 3
        room = self.limit - self.held
        connection = self.parent
        if connection is not None:
            room = min(room, connection.room())
        most = max(room, 0) // largest - expected
        if most <= 0:
            # An item may be larger than the limit. A stream that holds nothing must go on.
            most = 1 if expected <= 0 and self.held == 0 else 0
        return min(count, most)

    # For connections.

    def book_incomplete(self, size: int) -> None:
        """Count `size` bytes of frames or items that are not complete; a negative number uncounts them."""
        self.incomplete += size
        self.held += size

    def book_retained(self, size: int) -> None:
        """Count `size` bytes of output that is kept until the peer confirms it; a negative number uncounts them."""
        self.retained += size
        self.held += size

    def book_waiting(self, size: int) -> None:
        """Count `size` bytes of output in the link, instead of the earlier number."""
        self.book_retained(size - self.waiting)
        self.waiting = size

    def book_link(self, size: int) -> None:
        """Count `size` bytes of an incomplete message in the link, instead of the earlier number."""
        self.book_incomplete(size - self.of_link)
        self.of_link = size

    def book_unread(self, size: int) -> None:
        """Count `size` bytes that wait in the link until it is read, instead of the earlier number."""
        self.held += size - self.unread
        self.unread = size

    def lose_link(self, now: float = 0.0) -> None:
        """Uncount what its link has held. At `now` the session begins to wait for another one; 0: it has one."""
        self.unlinked_since = now
        self.book_waiting(0)
        self.book_link(0)
        self.book_unread(0)

    def room(self) -> int:
        """Return how much more may arrive; negative if the limit is exceeded."""
        return self.limit - self.held + self.retained

    @property
    def is_stuck(self) -> bool:
        """True if waiting makes no sense, because only reading can complete or confirm most of it."""
        return 2 * (self.incomplete + self.retained) > self.held

    def settle(self) -> int:
        """Let identity and process count what has changed, and return whether a limit is exceeded.

        Returns:
            FINE; or CONNECTION, IDENTITY or PROCESS, whose limit is exceeded by what this connection holds. The caller
            must then stop reading, and call this after each batch and after `on_room` until it returns FINE.

        """
        level = FINE
        if self.group is not None:
            level = self.group.settle(self)
        if self.room() < 0:
            level = CONNECTION
        self.paused = level != FINE
        return level

    def released(self) -> None:
        """Let others know what was released outside of a batch."""
        group = self.group
        if group is not None:
            group.count(self)
        if self.paused and self.room() >= 0:
            self.on_room()


class Group:
    """The bytes that the connections of an identity hold, or those of a process.

    Connections of several threads share a group, which has no lock: each change is one addition.

    Args:
        parent: The process, for an identity; None for the process.

    Attributes:
        held: The bytes that its connections held when they settled.
        incomplete: The part of `held` that nobody can consume before more arrives.
        peak: The maximum of `held`.
        limit: The bytes that it may hold: the smallest limit in the settings of its connections.
        incomplete_limit: The same for `incomplete`, which only the process limits.
        members: The identities of the process, or the accounts of an identity's connections.

    """

    __slots__ = (
        "_incomplete_limits", "_limits", "_payer", "_waiting", "held", "incomplete", "incomplete_limit", "limit",
        "members", "parent", "peak"
    )  # fmt: skip

    def __init__(self, parent: Group | None = None) -> None:
        self.parent = parent
        self.held = self.incomplete = 0
        self.peak = 0
        self.limit = 0
        self.incomplete_limit = UNLIMITED
        self.members: set[Group | Account] = set()
        # How many connections have each limit in their settings.
        self._limits: Counter[int] = Counter()
        self._incomplete_limits: Counter[int] = Counter()
        # Connections that wait until `held` is below the limit.
        self._waiting: set[Account] = set()
        # The connection that was told to pay.
        self._payer: Account | None = None

    def settle(self, connection: Account) -> int:
        """Count a connection of this identity. Returns the result of `Account.settle`."""
        self.count(connection)
        process = self.parent
        if process is not None and process.is_over():
            process.charge()
            if connection.held > connection.retained:
                process.wait(connection)
                return PROCESS
        if self.held > self.limit:
            if self._must_pay(connection):
                self.charge()
            if connection.held > connection.retained:
                self.wait(connection)
                return IDENTITY
        return FINE

    def is_over(self) -> bool:
        """Return whether a limit is exceeded."""
        return self.held > self.limit or self.incomplete > self.incomplete_limit

    def _must_pay(self, connection: Account) -> bool:
        """Return whether another connection must make room at once, because `connection` should not wait long."""
        return connection.held * len(self.members) <= self.limit or connection.is_stuck

    def expired(self) -> None:
        """Make the largest connection pay, because one has waited for too long."""
        process = self.parent
        if process is not None and process.is_over():
            process.charge()
        elif self.held > self.limit:
            self.charge()

    def paid(self) -> None:
        """Make another connection pay if that is still necessary, because one has paid."""
        process = self.parent
        if process is not None and process.is_over():
            process.charge()
        elif self.held > self.limit and any(map(self._must_pay, self._waiting)):
            self.charge()

    def count(self, connection: Account) -> None:
        """Count the changes of a connection of this identity."""
        change = connection.held - connection.settled
        part = connection.incomplete - connection.settled_incomplete
        if change or part:
            connection.settled = connection.held
            connection.settled_incomplete = connection.incomplete
            self.add(change, part)
            if self.parent is not None:
                self.parent.add(change, part)

    def add(self, change: int, part: int) -> None:
        """Add the changes of a connection. If that makes room, connections that wait try again."""
        self.held += change
        self.incomplete += part
        if self.held > self.peak:
            self.peak = self.held
        if self._waiting and not self.is_over():
            self._wake()

    def wait(self, connection: Account) -> None:
        """Call `on_room` of a connection when there is room."""
        self._waiting.add(connection)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, set()
        for connection in waiting:
            connection.on_room()

    def charge(self) -> None:
        """Make the largest connection pay. While one is paying, only remind it: its loop may be closed."""
        if self._payer is not None and self._payer.indebted:
            self._payer.on_debt()
            return
        if self._is_stale():
            return
        size = _held if self.held > self.limit else _incomplete
        largest: Group | Account = self
        while isinstance(largest, Group) and largest.members:
            if size is _held and largest.parent is not None:
                # What has no link is not in use now, and may never be again: the oldest goes first.
                parked = [each for each in largest.accounts() if each.unlinked_since and each.retained]
                if parked:
                    largest = min(parked, key=_unlinked_since)
                    break
            largest = max(largest.members, key=size)
        if isinstance(largest, Account):
            self._payer = largest
            largest.indebted = True
            largest.on_debt()

    def accounts(self) -> list[Account]:
        """Return the accounts of all its connections."""
        found: list[Account] = []
        for each in list(self.members):
            if isinstance(each, Group):
                found += each.accounts()
            else:
                found.append(each)
        return found

    def _is_stale(self) -> bool:
        """Return whether its connections have released enough since they settled; if so, let them settle."""
        accounts = self.accounts()
        if sum(map(_held, accounts)) > self.limit or sum(map(_incomplete, accounts)) > self.incomplete_limit:
            return False
        for each in accounts:
            if each.held != each.settled or each.incomplete != each.settled_incomplete:
                each.on_room()
        return True

    def limited(self, limit: int, incomplete: int = UNLIMITED) -> None:
        """Respect limits that are in the settings of a new connection."""
        self._limits[limit] += 1
        self._incomplete_limits[incomplete] += 1
        self._find_limits()

    def unlimited(self, limit: int, incomplete: int = UNLIMITED) -> None:
        """Forget limits, because a connection has left. If greater ones apply now, connections that wait try again."""
        self._limits[limit] -= 1
        self._incomplete_limits[incomplete] -= 1
        self._find_limits()
        if self._waiting and not self.is_over():
            self._wake()

    def _find_limits(self) -> None:
        # Unary plus removes what nobody demands any more.
        self._limits = +self._limits
        self._incomplete_limits = +self._incomplete_limits
        self.limit = min(self._limits, default=0)
        self.incomplete_limit = min(self._incomplete_limits, default=UNLIMITED)

    def left(self, connection: Account) -> bool:
        """Forget that a connection waits or pays, and return whether it was the one that paid."""
        self._waiting.discard(connection)
        paid = self._payer is connection
        if paid:
            self._payer = None
        return paid


def _held(account: Group | Account) -> int:
    return account.held


def _incomplete(account: Group | Account) -> int:
    return account.incomplete


def _unlinked_since(account: Account) -> float:
    return account.unlinked_since
