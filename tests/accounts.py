"""A ledger, for tests of accounts; and a check of the one of the process, after every test."""

from __future__ import annotations

import gc
import time
from typing import Any

from tests.builds import Build

__all__ = ["World", "check_ledger"]

PATIENCE = 2.0


class World:
    """A ledger, and the connections that were told to go on or to pay.

    Attributes:
        module: The module of accounts.
        ledger: Its accounts.
        room: The connections whose `on_room` was called, in order.
        debts: The connections whose `on_debt` was called, in order.

    """

    def __init__(self, build: Build) -> None:
        self.module = build.module("weirpool.account")
        self._settings = build.module("weirpool.settings").Settings
        self.ledger = build.module("weirpool.ledger").Ledger()
        self.room: list[Any] = []
        self.debts: list[Any] = []

    def connection(
        self,
        identity: str = "",
        own: int = 100,
        of_identity: int = 1_000,
        of_process: int = 10_000,
        incomplete: int = 10_000,
    ) -> Any:
        settings = self._settings(
            max_connection_bytes=own,
            max_identity_bytes=of_identity,
            max_process_bytes=of_process,
            max_process_reassembly_bytes=incomplete,
        )
        account = self.module.Account(own)
        account.on_room = lambda: self.room.append(account)
        account.on_debt = lambda: self.debts.append(account)
        self.ledger.join(account, identity, settings)
        return account

    def stream(self, connection: Any, limit: int = 50) -> Any:
        return self.module.Account(limit, connection)


def check_ledger(ledger: Any) -> None:
    """Check that no connection holds anything in the ledger of a build after a test.

    Production has no second chance: what a connection never gives back is missing for ever.
    """
    if not ledger.process.held and not ledger.process.incomplete:
        return
    # A test may leave connections to the garbage collector.
    gc.collect()
    process, until = ledger.process, time.monotonic() + PATIENCE
    # Connections in the loop of another thread, such as that of weirpool.sync, may be about to close.
    while (process.held or process.incomplete) and time.monotonic() < until:
        time.sleep(0.01)
    holding = [account for account in process.accounts() if account.held]
    left = [account.held for account in holding]
    for account in holding:
        # It must not fail the next test as well.
        ledger.leave(account)
    assert not left, f"connections hold {left} bytes in the ledger after the test"
    assert (process.held, process.incomplete) == (0, 0), "the ledger counts what no connection holds"
