"""Who waits, and who pays, where a neighbor could be taken for the culprit."""

from __future__ import annotations

import pytest

from tests.accounts import World
from tests.builds import Build


@pytest.fixture
def world(build: Build) -> World:
    return World(build)


def test_connection_that_holds_nothing_settles_without_a_batch(world: World) -> None:
    connection = world.connection("a")
    stream = world.stream(connection)
    stream.book(10)
    connection.settle()
    stream.release(9)
    assert world.ledger.process.held == 10
    stream.release(1)
    assert world.ledger.process.held == 0


@pytest.mark.parametrize("limit", ["of_identity", "of_process"])
def test_connection_is_read_if_it_holds_only_output(world: World, limit: str) -> None:
    greedy = world.connection("a", own=1_000, **{limit: 100})
    other = world.connection("a", own=1_000, **{limit: 100})
    other.book_retained(10)
    greedy.book(200)
    assert greedy.settle() != world.module.FINE
    assert other.settle() == world.module.FINE
    # Reading could not release it: the peer confirms output by what it sends.
    other.book(1)
    assert other.settle() != world.module.FINE


def test_largest_connection_of_the_identity_pays_when_one_has_waited(world: World) -> None:
    stranger = world.connection("b", own=10_000, of_identity=5_000)
    stranger.book(4_000)
    stranger.settle()
    small, large = (world.connection("a", own=1_000, of_identity=100) for _ in range(2))
    for connection, size in ((small, 60), (large, 90)):
        connection.book(size)
        connection.settle()
    world.debts.clear()
    large.indebted = False
    small.group.expired()
    assert world.debts == [large]
