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


def test_limits_that_are_just_reached_are_not_exceeded(world: World) -> None:
    connection = world.connection("a", own=100, of_identity=100, of_process=100, incomplete=60)
    connection.book(40)
    connection.book_incomplete(60)
    assert connection.settle() == world.module.FINE
    connection.group.expired()
    assert world.debts == []


def test_connection_with_its_fair_share_does_not_wait_for_consumers(world: World) -> None:
    greedy, modest = (world.connection("a", own=1_000, of_identity=100) for _ in range(2))
    greedy.book(51)
    greedy.settle()
    modest.book(50)
    assert modest.settle() == world.module.IDENTITY
    assert world.debts == [greedy]


def test_largest_connection_of_the_process_pays_when_one_has_waited(world: World) -> None:
    small = world.connection("small", own=1_000, of_process=100)
    large = world.connection("large", own=1_000, of_process=100)
    for connection, size in ((large, 90), (small, 60)):
        connection.book(size)
        connection.settle()
    world.debts.clear()
    large.indebted = False
    small.group.expired()
    assert world.debts == [large]


def test_nobody_pays_twice_at_a_time(world: World) -> None:
    first, second, third = (world.connection("a", own=1_000, of_identity=100) for _ in range(3))
    for connection, size in ((first, 60), (second, 35), (third, 10)):
        connection.book(size)
        connection.settle()
    assert world.debts == [first] and first.indebted
    # It is on its way, and no longer the largest.
    first.release(30)
    second.book(20)
    second.settle()
    third.book(20)
    assert third.settle() == world.module.IDENTITY
    assert world.debts == [first, first]


def test_nobody_else_pays_when_the_first_payment_was_enough(world: World) -> None:
    first, second, modest = (world.connection("a", own=1_000, of_identity=100) for _ in range(3))
    for connection, size in ((first, 60), (second, 30), (modest, 20)):
        connection.book(size)
        connection.settle()
    assert world.debts == [first]
    first.indebted = False
    first.release(10)
    first.settle()
    first.group.paid()
    assert world.debts == [first]


def test_nobody_else_pays_for_a_connection_above_its_share(world: World) -> None:
    greedy, modest = (world.connection("a", own=1_000, of_identity=100) for _ in range(2))
    modest.book(5)
    modest.settle()
    greedy.book(101)
    assert greedy.settle() == world.module.IDENTITY
    # A payment for another reason.
    greedy.group.paid()
    assert world.debts == []


def test_session_without_a_link_does_not_pay_for_another_identity(world: World) -> None:
    # THREATS 30, 88
    parked = world.connection("b", own=200, of_process=300)
    parked.unlinked_since = 1.0
    parked.book_retained(100)
    parked.settle()
    greedy = world.connection("a", own=300, of_process=300)
    greedy.book(201)
    greedy.settle()
    assert world.debts == [greedy]


def test_session_without_a_link_does_not_pay_for_incomplete_items(world: World) -> None:
    # THREATS 47, 88
    parked, hoarder = (world.connection("a", own=1_000, incomplete=100) for _ in range(2))
    parked.unlinked_since = 1.0
    parked.book_retained(50)
    parked.settle()
    hoarder.book_incomplete(101)
    hoarder.settle()
    assert world.debts == [hoarder]


def test_nobody_pays_for_what_another_identity_has_released(world: World) -> None:
    first = world.connection("a", own=300, of_process=300)
    second = world.connection("b", own=300, of_process=300)
    stream = world.stream(first)
    stream.book(280)
    first.settle()
    # Less than what settles by itself, and just enough.
    stream.release(30)
    second.book(50)
    assert second.settle() == world.module.PROCESS
    assert (world.debts, world.room) == ([], [first])


def test_nobody_pays_for_items_that_are_complete_meanwhile(world: World) -> None:
    first, second = (world.connection(name, own=300, incomplete=100) for name in "ab")
    first.book_incomplete(90)
    first.settle()
    world.stream(first).book(90)
    first.book_incomplete(-90)
    first.group.count(first)
    first.book_incomplete(60)
    first.settle()
    first.incomplete -= 10
    second.book_incomplete(50)
    assert second.settle() == world.module.PROCESS
    assert (world.debts, world.room) == ([], [first])


def test_connections_that_wait_go_on_when_a_smaller_limit_no_longer_applies(world: World) -> None:
    stricter = world.connection("a", own=1_000, of_identity=50)
    strict = world.connection("a", own=1_000, of_identity=100)
    generous = world.connection("a", own=1_000, of_identity=500)
    generous.book(200)
    assert generous.settle() == world.module.IDENTITY
    world.ledger.leave(stricter)
    assert world.room == []
    world.ledger.leave(strict)
    assert world.room == [generous]
    assert generous.settle() == world.module.FINE
