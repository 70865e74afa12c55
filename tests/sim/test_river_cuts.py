"""Two River sessions over links that are cut at every byte, with all kinds: each message once, in order."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.river.peers import Duo
from weirpool.kinds import Kind
from weirpool.wire.river.values import decode_value

UPTO = 4


class World(Duo):
    """Both sides, with handlers on the server.

    Args:
        codec: ``json`` or ``msgpack``.
        at: The bytes that arrive in both directions together before the link is cut.
        seed: The seed of random cuts of the later links; None: they are not cut.

    """

    def __init__(self, codec: str, at: int = 1 << 60, seed: int | None = None) -> None:
        self.arrived = 0
        self.at = at
        self.rng = None if seed is None else random.Random(seed)
        self.cuts = 0
        self.looked = 0
        self.seen: list[Any] = []
        super().__init__(codec)

    def _bring(self, pieces: list[bytes], direction: str) -> bool:
        for piece in pieces:
            room = self.at - self.arrived
            if room < len(piece):
                self.arrived = self.at
                # Long enough that sometimes all repeated messages arrive; otherwise there is no progress.
                self.at += 1 << 60 if self.rng is None else self.rng.randrange(6_000)
                self.cuts += 1
                self._arrive_in_part(piece[:room], direction)
                return False
            self.arrived += len(piece)
            self._arrive(piece, direction)
        return True

    def _arrive_in_part(self, part: bytes, direction: str) -> None:
        if direction == "s>c":
            self.client.receive(part, self.now)
        elif self.acceptor is None:
            self.server.receive(part, self.now)
        else:
            assert self.acceptor.receive(part, self.now) is None

    def go_on(self) -> None:
        """Run until nothing moves; open another link when one is cut."""
        while True:
            self.drive()
            quiet = self.looked == len(self.server_events)
            self.handle()
            if not self.linked:
                self.now += 0.01
                self.link()
            elif quiet:
                return

    def handle(self) -> None:
        """Answer requests like handlers of each kind."""
        while self.looked < len(self.server_events):
            event = self.server_events[self.looked]
            self.looked += 1
            number, name = event.stream_id, type(event).__name__
            if name == "Requested":
                self.seen.append((event.route, decode_value(event.payload.data, self.codec)))
                if event.route == "demo.add":
                    self.server.send(number, event.payload, True)
                elif event.route == "demo.count":
                    for item in range(UPTO):
                        self.server.send(number, self.payload(item))
                    self.server.complete(number)
                else:
                    self.server.request(number, 100)
            elif name == "ItemReceived":
                self.seen.append((number, decode_value(event.payload.data, self.codec)))
                if number == self.echo:
                    self.server.send(number, event.payload)
            if name == "Completed" or (name == "ItemReceived" and event.done):
                self.seen.append((number, "end"))
                if number == self.echo:
                    self.server.complete(number)
                else:
                    self.server.send(number, self.payload("sum"), True)

    @property
    def echo(self) -> int:
        """The server's number of the channel."""
        return next((event.stream_id for event in self.of("server", "Requested") if event.route == "demo.echo"), 0)

    def play(self) -> list[Any]:
        """Use all kinds together; return the events of both sides."""
        client = self.client
        numbers = [
            client.open(Kind.CALL, "demo.add", self.payload({"a": 1}), 1),
            client.open(Kind.STREAM, "demo.count", self.payload({}), 100),
            client.open(Kind.CHANNEL, "demo.echo", self.payload({"prefix": ">"}), 100),
            client.open(Kind.UPLOAD, "demo.sum", self.payload({"start": 0}), 1),
        ]
        self.go_on()
        for item in range(3):
            client.send(numbers[2], self.payload({"msg": item}))
            client.send(numbers[3], self.payload({"n": item}), item == 2)
            self.go_on()
        client.complete(numbers[2])
        self.go_on()
        ends = sorted(event.stream_id for event in self.of("client", "Completed"))
        assert client.open_streams == self.server.open_streams == 0
        assert not self.of("client", "Closed") and not self.of("client", "Failed")
        return [*(self.items("client", number) for number in numbers), ends, self.seen]


def cut_everywhere(codec: str, step: int) -> None:
    quiet = World(codec)
    expected = quiet.play()
    assert expected[:4] == [[{"a": 1}], list(range(UPTO)), [{"msg": item} for item in range(3)], ["sum"]]
    total = quiet.arrived
    assert total > 2_000
    for at in range(0, total, step):
        world = World(codec, at)
        assert world.play() == expected, at
        assert world.cuts == 1


@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_a_cut_at_many_bytes_changes_nothing(codec: str) -> None:
    cut_everywhere(codec, 23)


@pytest.mark.slow
@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_a_cut_at_every_byte_changes_nothing(codec: str) -> None:
    cut_everywhere(codec, 1)


@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_cuts_again_and_again_change_nothing(codec: str) -> None:
    expected = World(codec).play()
    cuts = 0
    for seed in range(60):
        world = World(codec, seed, seed)
        assert world.play() == expected
        cuts += world.cuts
    assert cuts > 100
