"""A client with checkpoints is killed at each step; the next process has every item once, in order."""

from __future__ import annotations

from typing import Any

import pytest

from tests.river.peers import Duo
from weirpool.kinds import Kind
from weirpool.river.connect import restored_client
from weirpool.river.identity import Identity
from weirpool.settings import Settings
from weirpool.wire.river.values import decode_value

ITEMS = 12
MOMENTS = ("in flight", "covered", "durable", "committed", "told in part", "told")


class Killed(Exception):
    """The client's process was killed."""


class Process(Duo):
    """A subscription, and a client that stores its items in a journal like a collector.

    Attributes:
        journal: The stored items, with the newest checkpoint.
        kill_at: The round and the step at which the client is killed.

    """

    def __init__(self, codec: str, kills: dict[int, str], credit: int, heartbeats: bool) -> None:
        super().__init__(codec)
        self.journal: list[Any] = []
        self.checkpoint: bytes | None = None
        self.kills = kills
        self.credit = credit
        self.heartbeats = heartbeats
        self.processes = 1
        self.round = 0
        self.ours = self.client.open(Kind.STREAM, "demo.count", self.payload({}), credit)
        self.record(0)
        self.drive()
        self.theirs = self.of("server", "Requested")[0].stream_id

    def moment(self, name: str) -> None:
        if self.kills.get(self.round) == name:
            del self.kills[self.round]
            raise Killed

    def taken(self) -> list[Any]:
        """Take the items that have arrived."""
        self.listen()
        items = self.items("client", self.ours)
        self.client_events.clear()
        return items

    def record(self, grant: int) -> None:
        """Append the items with a checkpoint, and commit it."""
        items = self.taken()
        checkpoint = self.client.checkpoint(self.ours, grant + len(items))
        assert checkpoint is not None
        self.moment("covered")
        self.journal += items
        self.checkpoint = checkpoint
        self.moment("durable")
        self.client.commit()
        self.moment("committed")
        if self.kills.get(self.round) == "told in part":
            self.server.receive(b"".join(self.client.take_output())[:70], self.now)
            self.moment("told in part")
        self.drive()
        self.moment("told")

    def play(self) -> None:
        """Send everything, and replace a killed process by another one."""
        for number in range(ITEMS):
            self.round = number + 1
            self.server.send(self.theirs, self.payload(number))
            try:
                self.drive()
                self.moment("in flight")
                if self.heartbeats:
                    self.advance(3.5)
                if number % 3 == 2:
                    self.record(0)
            except Killed:
                self.take_over()
        while len(self.journal) < ITEMS:
            self.record(0)

    def take_over(self) -> None:
        assert self.checkpoint is not None
        self.processes += 1
        self.client.take_output()
        random = b"process %8d" % self.processes
        secret = self.client.secret
        self.client = restored_client(Settings(), Identity(self.codec), b"", random, self.checkpoint, secret)
        self.client_events.clear()
        self.cut()
        self.link()
        if self.round + 1 not in self.kills:
            self.record(0)


@pytest.mark.parametrize("heartbeats", [False, True], ids=["busy", "with heartbeats"])
@pytest.mark.parametrize("credit", [2, 100], ids=["little is asked for", "much is asked for"])
@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_a_kill_at_any_moment_loses_nothing(codec: str, credit: int, heartbeats: bool) -> None:
    played = 0
    for moment in MOMENTS:
        for at in range(4, ITEMS + 1):
            if moment != "in flight" and at % 3:
                continue
            # The next process may be killed before it has stored anything, and so may the one after it.
            for times in (1, 3):
                kills = {each: moment if each == at else "in flight" for each in range(at, min(at + times, ITEMS + 1))}
                world = Process(codec, kills, credit, heartbeats)
                world.play()
                assert world.journal == list(range(ITEMS)), (moment, at, times)
                assert not world.kills and world.processes > 1
                assert world.server.sequence.ack == world.client.sequence.seq
                played += 1
    assert played > 30


def test_the_stream_goes_on_as_it_was_asked_for() -> None:
    world = Process("json", {6: "told"}, 100, False)
    world.play()
    assert len(world.of("server", "Requested")) == 1
    world.server.complete(world.theirs)
    world.drive()
    assert world.of("client", "Completed")
    assert decode_value(world.of("server", "Requested")[0].payload.data, "json") == {}
