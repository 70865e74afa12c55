"""Keeps a connection within the limits of what it may hold: stops reading, and drops its largest stream."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Callable

from ..account import CONNECTION, FINE
from ..errors import LimitExceeded, LinkLost
from ..ledger import LEDGER
from .exchanges import Exchanges
from .holds import UNREAD
from .ports import Holding

__all__ = ["Budget"]

logger = logging.getLogger("weirpool.aio")


class Budget:
    """Acts for one connection when an account is full.

    Reading stops while the connection holds too much. If nothing is consumed for `Settings.unread_timeout`, or if the
    ledger demands it, the largest stream fails, and what it held is dropped.
    """

    __slots__ = (
        "__weakref__", "_account", "_asked", "_closed", "_exchanges", "_flow", "_grown_at", "_held", "_identity",
        "_is_alone", "_timer", "_watch", "_woken"
    )  # fmt: skip

    def __init__(self, exchanges: Exchanges) -> None:
        self._exchanges = exchanges
        self._flow = flow = exchanges.flow
        self._account = account = flow.account
        self._timer: asyncio.TimerHandle | None = None
        # Checks that an incomplete message in the link grows; and when it has.
        self._watch: asyncio.TimerHandle | None = None
        self._grown_at = 0.0
        # What was held when the timer was set.
        self._held = 0
        self._woken = self._asked = self._closed = False
        # Whether the connection has exceeded its own limit.
        self._is_alone = False
        # The ledger must not keep a connection alive that nobody has closed.
        account.on_room = _weak(self._room)
        account.on_debt = _weak(self._debt)
        self._identity: str | None = None
        self.identify()

    def __del__(self) -> None:
        # Nobody has closed the connection, so its handlers have not ended. Only consumers may still hold items.
        for half in (*self._exchanges.outbound.values(), *self._exchanges.fires):
            self._account.release(half.held)
            half.held = 0
        self._account.lose_link()
        LEDGER.retire(self._account)

    def identify(self) -> None:
        """Count the connection for its principal, or else for its address. Call it again when that has changed."""
        identity = self._flow.connection.counted_as
        if identity != self._identity and not self._closed:
            self._identity = identity
            self._flow.reader.client = self._flow.turns.client(identity)
            LEDGER.join(self._account, identity, self._flow.settings)

    def settle(self) -> None:
        """Settle the account at the end of a batch, and stop or resume reading."""
        level = self._account.settle()
        if self._closed:
            self._retire()
            return
        if level == FINE:
            self._flow.resume_reading(UNREAD)
            self._stop_timer()
        else:
            self._flow.stop_reading(UNREAD)
            self._is_alone = level == CONNECTION
            if self._is_alone and self._account.is_stuck:
                self._debt()
            elif self._timer is None:
                self._start_timer()

    def count_link(self) -> None:
        """Count what the link holds after a read, and watch that an incomplete message grows (THREATS 86)."""
        flow = self._flow
        link = flow.link
        held = 0 if link is None else link.unfinished
        self._account.book_link(held)
        self._account.book_unread((0 if link is None else link.unread) + sum(map(len, flow.kept)))
        self._grown_at = flow.loop.time()
        if held and self._watch is None:
            self._watch = flow.loop.call_later(flow.settings.frame_timeout, self._check_growth)

    def _check_growth(self) -> None:
        """Give up the link if its message has not grown for `Settings.frame_timeout`."""
        flow, account = self._flow, self._account
        self._watch = None
        link = flow.link
        if link is None or not account.of_link:
            return
        now, timeout = flow.loop.time(), flow.settings.frame_timeout
        if account.paused or flow.holds:
            # This side does not read.
            self._grown_at = now
        if self._grown_at + timeout <= now:
            flow.link_broken(LinkLost(f"the peer stopped within a message for frame_timeout ({timeout:g} s)"))
        else:
            self._watch = flow.loop.call_at(self._grown_at + timeout, self._check_growth)

    def detach(self) -> None:
        """Stop, and forget what only the session holds, because nobody here will consume it."""
        account = self._account
        of_streams = sum(map(_held, self._exchanges.holdings()))
        account.release(account.held - account.incomplete - account.retained - of_streams)
        self.close()

    def close(self) -> None:
        """Leave the ledger as soon as the link is gone and nothing is held any more, because the session has ended.

        Call `settle` when the last output is written, and when the link is gone.
        """
        if not self._closed:
            self._closed = True
            self._stop_timer()
            if self._watch is not None:
                self._watch.cancel()
            self._retire()

    def _retire(self) -> None:
        LEDGER.retire(self._account, linked=self._flow.link is not None)

    # From the ledger, in any thread.

    def _room(self) -> None:
        if not self._woken:
            self._woken = self._later(self._try_again)

    def _debt(self) -> None:
        if self._asked and not self._flow.loop.is_closed():
            return
        self._asked = self._later(self._pay_debt)
        if not self._asked:
            # Nobody reads or consumes any more in a loop that is closed.
            LEDGER.leave(self._account)

    def _later(self, function: Callable[[], None]) -> bool:
        """Call `function` in the connection's loop; return False if the loop is closed."""
        try:
            self._flow.loop.call_soon_threadsafe(function)
        except RuntimeError:
            return False
        return True

    # In the connection's loop.

    def _try_again(self) -> None:
        self._woken = False
        self._flow.flush()

    def _start_timer(self) -> None:
        flow = self._flow
        self._held = self._account.held
        self._timer = flow.loop.call_later(flow.settings.unread_timeout, self._expired)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expired(self) -> None:
        """Fail the largest stream, unless something was consumed meanwhile."""
        self._timer = None
        group = self._account.group
        if self._account.held < self._held:
            self._start_timer()
        elif not self._is_alone and group is not None:
            # It need not be a stream of this connection.
            self._start_timer()
            group.expired()
        else:
            timeout = self._flow.settings.unread_timeout
            self._pay("unread_timeout", f"nothing was consumed for unread_timeout ({timeout:g} s)")

    def _pay_debt(self) -> None:
        account = self._account
        self._asked = account.indebted = False
        group = account.group
        if account.room() < 0:
            limit = f"the connection holds more than max_connection_bytes ({account.limit})"
            self._pay("max_connection_bytes", limit)
        elif group is not None and group.parent is not None:
            process = group.parent
            if process.held > process.limit:
                limit = f"all connections hold more than max_process_bytes ({process.limit})"
                self._pay_others("max_process_bytes", limit)
            elif group.held > group.limit:
                name = self._flow.connection.counted_as or self._flow.name
                limit = f"the connections of {name} hold more than max_identity_bytes ({group.limit})"
                self._pay_others("max_identity_bytes", limit)
            elif process.is_over():
                limit = f"max_process_reassembly_bytes ({process.incomplete_limit})"
                self._shed(f"unfinished items of all connections hold more than {limit}")
                self._paid("max_process_reassembly_bytes")

    def _pay_others(self, setting: str, why: str) -> None:
        """Make room for other connections. A session that has output without a link to send it over ends."""
        account, flow = self._account, self._flow
        if account.unlinked_since and account.retained:
            error = LimitExceeded(f"the session keeps {account.retained} bytes for a client without a link, and {why}")
            logger.warning("%s: %s", flow.name, error)
            flow.session.close(flow.loop.time(), error)
            self._paid(setting)
        else:
            self._pay(setting, why)

    def _pay(self, setting: str, why: str) -> None:
        """Drop what the largest stream holds, and fail it."""
        holdings = self._exchanges.holdings()
        largest = max(holdings, key=_held, default=None)
        of_session = self._account.held - sum(map(_held, holdings))
        if largest is None or of_session > largest.held:
            self._shed(f"{self._account.held} bytes were not consumed or not confirmed, and {why}")
        else:
            self._drop(largest, f"{largest.held} bytes were not consumed, and {why}")
        self._paid(setting)

    def _shed(self, why: str) -> None:
        """Let the session drop the largest thing that it holds; end it if there is none."""
        flow = self._flow
        now = flow.loop.time()
        error = LimitExceeded(why)
        logger.warning("%s: %s", flow.name, why)
        account, link = self._account, flow.link
        in_link = self._closed or 2 * (account.waiting + account.of_link) > account.held
        if in_link or not flow.session.shed(now, error):
            flow.session.close(now, error)
        if in_link and link is not None:
            # Only the end of the link releases it. A peer that does not read would not see the error, either.
            link.abort()
            account.lose_link()
            flow.session.take_output()

    def _drop(self, holding: Holding, why: str) -> None:
        """Fail a stream, and drop what it holds."""
        text = f"stream {holding.stream_id}: {why}"
        logger.warning("%s: %s", self._flow.name, text)
        self._exchanges.drop(holding, text)

    def _paid(self, setting: str) -> None:
        """Count a payment because of a setting."""
        LEDGER.payments_by_limit[setting] += 1
        self._flow.flush()
        # If the connection has ended, it has left its group, which has noticed.
        if self._account.group is not None:
            self._account.group.paid()


def _weak(method: Callable[[], None]) -> Callable[[], None]:
    """Return a function that calls a method while its object exists."""
    reference = weakref.WeakMethod(method)

    def call() -> None:
        found = reference()
        if found is not None:
            found()

    return call


def _held(holding: Holding) -> int:
    return holding.held
