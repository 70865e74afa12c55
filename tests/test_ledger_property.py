"""Whatever connections and streams do, the accounts agree, and end at zero."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.builds import Build

LIMIT = 500_000
CONNECTIONS = 6
STREAMS = 3
STEPS = st.tuples(
    st.sampled_from(["book", "book", "book", "release", "close", "settle", "leave", "join"]),
    st.integers(0, CONNECTIONS - 1),
    st.integers(0, STREAMS - 1),
    st.sampled_from([1, 1_000, 70_000, 150_000, 200_000]),
)


STALE = [("book", 0, 0, 200_000), ("book", 1, 0, 150_000), ("release", 1, 0, 1), ("book", 0, 1, 150_001)]
"""Nobody has to pay, because connection 1 has released a byte since it settled."""


class Model:
    """A ledger whose connections do at once what they are told: pay with their largest stream, or settle."""

    def __init__(self, build: Build) -> None:
        module = build.module("weirpool.account")
        make = build.module("weirpool.settings").Settings
        self.settings = make(
            max_connection_bytes=200_000, max_identity_bytes=300_000, max_process_bytes=LIMIT, max_stream_bytes=100_000
        )
        self.ledger = build.module("weirpool.ledger").Ledger()
        self.accounts = [module.Account(200_000) for _ in range(CONNECTIONS)]
        self.streams = [[module.Account(100_000, account) for _ in range(STREAMS)] for account in self.accounts]
        # Each is told again while it has not done so.
        self.debts: set[int] = set()
        self.settling: set[int] = set()
        for number, account in enumerate(self.accounts):
            account.on_debt = lambda number=number: self.debts.add(number)
            account.on_room = lambda number=number: self.settling.add(number)
            self.join(number)

    def join(self, number: int) -> None:
        self.ledger.join(self.accounts[number], ["", "a", "b"][number % 3], self.settings)

    def obey(self) -> None:
        """Let the connections settle or pay that were told to, until none is."""
        while self.settling or self.debts:
            if self.settling:
                self.accounts[self.settling.pop()].settle()
                continue
            number = self.debts.pop()
            largest = max(self.streams[number], key=lambda stream: stream.held)
            assert largest.held > 0, "a connection was told to pay that holds nothing"
            largest.close()
            self.accounts[number].indebted = False
            self.accounts[number].settle()

    def step(self, what: str, number: int, place: int, size: int) -> None:
        account, stream = self.accounts[number], self.streams[number][place]
        joined = account.group is not None
        if what == "book" and joined:
            stream.book(size)
            account.settle()
        elif what == "release":
            stream.release(min(size, stream.held))
        elif what == "close":
            stream.close()
        elif what == "settle":
            account.settle()
        elif what == "leave":
            for each in self.streams[number]:
                each.close()
            self.ledger.leave(account)
        elif what == "join" and not joined:
            self.join(number)
        self.obey()

    def check(self) -> None:
        process, groups = self.ledger.process, {each.group for each in self.accounts if each.group is not None}
        for account, streams in zip(self.accounts, self.streams, strict=True):
            assert account.held == sum(stream.held for stream in streams) >= 0
        for group in groups:
            assert group.held == sum(account.settled for account in group.members)
            assert group.incomplete == sum(account.settled_incomplete for account in group.members)
        assert process.members == groups
        assert process.held == sum(group.held for group in groups) <= LIMIT


@settings(max_examples=150, deadline=None)
@example(steps=STALE)
@given(steps=st.lists(STEPS, min_size=20, max_size=80))
def test_accounts_agree_and_the_process_stays_within_its_limit(builds: dict[str, Build], steps: list[Any]) -> None:
    # THREATS 87
    for build in builds.values():
        model = Model(build)
        for step in steps:
            model.step(*step)
            model.check()
        for number in range(CONNECTIONS):
            model.step("leave", number, 0, 0)
        assert (model.ledger.process.held, model.ledger.identities) == (0, {})
