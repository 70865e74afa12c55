from __future__ import annotations

import gc

import pytest

from tests.accounts import World
from tests.builds import Build


@pytest.fixture
def world(build: Build) -> World:
    return World(build)


def test_stream_counts_for_its_connection_at_once(world: World) -> None:
    connection = world.connection()
    first, second = world.stream(connection), world.stream(connection)
    first.book(10)
    second.book(5)
    first.release(3)
    assert (first.held, second.held, connection.held) == (7, 5, 12)
    first.close()
    assert (first.held, connection.held) == (0, 5)


def test_stream_that_is_dropped_holds_nothing(world: World) -> None:
    connection = world.connection()
    stream = world.stream(connection)
    stream.book(10)
    del stream
    gc.collect()
    assert connection.held == 0


def test_identity_and_process_count_when_a_connection_settles(world: World) -> None:
    connection = world.connection("a")
    world.connection("a").book(1)
    connection.book(12)
    process = world.ledger.process
    assert (connection.group.held, process.held) == (0, 0)
    assert connection.settle() == world.module.FINE
    assert (connection.group.held, process.held, process.peak) == (12, 12, 12)
    connection.release(12)
    assert connection.settle() == world.module.FINE
    assert (connection.group.held, process.held, process.peak) == (0, 0, 12)


def test_large_releases_settle_without_a_batch(world: World) -> None:
    slack = world.module.SLACK if hasattr(world.module, "SLACK") else 65_536
    connection = world.connection(own=1 << 30, of_identity=1 << 30, of_process=1 << 30)
    stream = world.stream(connection)
    stream.book(3 * slack)
    connection.settle()
    stream.release(slack)
    assert world.ledger.process.held == 3 * slack
    stream.release(1)
    assert world.ledger.process.held == 2 * slack - 1


def test_connection_over_its_limit_waits_until_it_is_below(world: World) -> None:
    connection = world.connection(own=100)
    stream = world.stream(connection)
    stream.book(102)
    assert connection.settle() == world.module.CONNECTION
    assert connection.paused
    stream.release(1)
    assert world.room == []
    stream.release(1)
    assert world.room == [connection]
    assert connection.settle() == world.module.FINE
    assert not connection.paused and world.debts == []


# Identities. THREATS 87


def test_smaller_connection_waits_only_until_the_largest_has_paid(world: World) -> None:
    greedy, modest = (world.connection("a", own=1_000, of_identity=100) for _ in range(2))
    greedy.book(95)
    modest.book(10)
    assert greedy.settle() == world.module.FINE
    assert modest.settle() == world.module.IDENTITY
    assert world.debts == [greedy]
    greedy.release(95)
    greedy.settle()
    assert world.room == [modest]
    assert modest.settle() == world.module.FINE


def test_connection_above_its_share_waits_for_its_consumers(world: World) -> None:
    greedy, modest = (world.connection("a", own=1_000, of_identity=100) for _ in range(2))
    modest.book(5)
    modest.settle()
    greedy.book(101)
    assert greedy.settle() == world.module.IDENTITY
    assert world.debts == []


def test_incomplete_items_are_not_waited_for(world: World) -> None:
    # THREATS 86
    greedy, modest = (world.connection("a", own=1_000, of_identity=100) for _ in range(2))
    modest.book(5)
    modest.settle()
    greedy.book_incomplete(101)
    assert greedy.settle() == world.module.IDENTITY
    assert world.debts == [greedy]


def test_another_connection_pays_if_one_was_not_enough(world: World) -> None:
    first, second, modest = (world.connection("a", own=1_000, of_identity=100) for _ in range(3))
    for connection, size in ((first, 70), (second, 60), (modest, 20)):
        connection.book(size)
        connection.settle()
    assert world.debts == [first]
    first.release(5)
    first.indebted = False
    first.settle()
    first.group.paid()
    assert world.debts == [first, first]


def test_identity_with_room_again_wakes_those_that_wait(world: World) -> None:
    first, second = (world.connection("a", own=1_000, of_identity=100) for _ in range(2))
    first.book(60)
    second.book(60)
    assert (first.settle(), second.settle()) == (world.module.FINE, world.module.IDENTITY)
    first.release(40)
    first.settle()
    assert world.room == [second]
    assert second.settle() == world.module.FINE


def test_largest_connection_of_the_largest_identity_pays(world: World) -> None:
    lone = world.connection("lone", own=1_000, of_process=100)
    small, large = (world.connection("crowd", own=1_000, of_process=100) for _ in range(2))
    for connection, size in ((lone, 40), (small, 20), (large, 35)):
        connection.book(size)
        connection.settle()
    # The crowd holds 60 together, so its larger connection pays, although `lone` holds more.
    lone.book(6)
    assert lone.settle() == world.module.PROCESS
    assert world.debts == [large]


def test_one_connection_pays_at_a_time(world: World) -> None:
    first, second = (world.connection(own=1_000, of_process=100) for _ in range(2))
    first.book(90)
    second.book(80)
    for connection in (first, second, first, second):
        connection.settle()
    # It is reminded, because its loop may be closed.
    assert world.debts == [first, first, first]
    world.debts.clear()
    first.release(90)
    first.indebted = False
    first.settle()
    second.book(30)
    second.settle()
    assert world.debts == [second]


def test_connection_that_leaves_instead_of_paying_blocks_no_other(world: World) -> None:
    first, second = (world.connection(own=1_000, of_process=100) for _ in range(2))
    first.book(110)
    second.book(105)
    first.settle()
    world.ledger.leave(first)
    second.settle()
    assert world.debts == [first, second]


def test_everything_is_granted_before_the_first_item(world: World) -> None:
    assert world.stream(world.connection()).grantable(256, 0) == 256


def test_demand_follows_the_largest_item(world: World) -> None:
    stream = world.stream(world.connection(own=1_000), 100)
    stream.largest = 10
    assert stream.grantable(256, 0) == 10
    stream.largest = 10
    assert stream.grantable(256, 4) == 6
    stream.largest = 10
    stream.book(60)
    assert stream.grantable(256, 2) == 2
    stream.largest = 10
    assert stream.grantable(1, 2) == 1
    stream.largest = 10
    assert stream.grantable(256, 4) == 0


def test_demand_respects_what_the_connection_holds(world: World) -> None:
    connection = world.connection(own=100)
    stream = world.stream(connection, 100)
    other = world.stream(connection)
    other.book(80)
    stream.largest = 10
    assert stream.grantable(256, 0) == 2


def test_stream_with_room_for_one_more_item_gets_it(world: World) -> None:
    stream = world.stream(world.connection(own=1_000), 100)
    stream.largest = 50
    stream.book(50)
    assert stream.grantable(256, 0) == 1


def test_items_larger_than_the_limit_come_one_by_one(world: World) -> None:
    connection = world.connection(own=100)
    stream = world.stream(connection, 100)
    stream.largest = 500
    assert stream.grantable(256, 0) == 1
    assert stream.grantable(256, 1) == 0
    stream.book(500)
    assert stream.grantable(256, 0) == 0


def test_one_large_item_is_forgotten(world: World) -> None:
    stream = world.stream(world.connection(own=10_000), 1_000)
    stream.largest = 1_000
    assert stream.grantable(256, 0) == 1
    for _ in range(40):
        granted = stream.grantable(256, 0)
    assert granted > 100


def test_who_holds_most_that_is_incomplete_pays(world: World) -> None:
    # THREATS 47, 87
    hoarder, smaller = (world.connection("a", incomplete=300) for _ in range(2))
    honest = world.connection("b", incomplete=300)
    consumer = world.connection("c", own=1_000, incomplete=300)
    hoarder.book_incomplete(160)
    smaller.book_incomplete(110)
    # More than anybody else, but complete.
    complete = world.stream(consumer)
    complete.book(500)
    for account in (hoarder, smaller, consumer):
        account.settle()
    assert world.debts == []
    honest.book_incomplete(40)
    assert honest.settle() == world.module.PROCESS
    assert world.debts == [hoarder]
    hoarder.book_incomplete(-100)
    hoarder.indebted = False
    hoarder.settle()
    assert world.room == [honest]
    assert honest.settle() == world.module.FINE


def test_incomplete_bytes_that_become_items_make_room(world: World) -> None:
    first, second = (world.connection(name, incomplete=100) for name in "ab")
    first.book_incomplete(60)
    first.settle()
    second.book_incomplete(50)
    assert second.settle() == world.module.PROCESS
    stream = world.stream(first)
    stream.book(60)
    first.book_incomplete(-60)
    assert first.settled == first.held
    first.settle()
    assert second in world.room
    assert world.ledger.process.incomplete == 50


def test_connection_over_its_limit_by_what_it_retains_goes_on(world: World) -> None:
    # Reading confirms it.
    connection = world.connection(own=100)
    connection.book_retained(300)
    assert connection.settle() == world.module.FINE
    stream = world.stream(connection, limit=1_000)
    stream.book(101)
    assert connection.settle() == world.module.CONNECTION
    stream.release(1)
    assert connection.settle() == world.module.FINE


def test_retained_output_makes_nobody_wait(world: World) -> None:
    # THREATS 88
    first, second = (world.connection("a", own=200, of_identity=300) for _ in range(2))
    first.book_retained(200)
    first.settle()
    second.book_retained(150)
    assert second.settle() == world.module.FINE
    assert world.debts == [first]


def test_oldest_session_without_a_link_pays_first(world: World) -> None:
    # THREATS 30, 88
    linked, newer, older, empty = (world.connection("a", own=200, of_identity=300) for _ in range(4))
    newer.unlinked_since, older.unlinked_since, empty.unlinked_since = 20.0, 10.0, 5.0
    for account, size in ((linked, 200), (newer, 60), (older, 40)):
        account.book_retained(size)
        account.settle()
    assert world.debts == []
    linked.book_retained(1)
    linked.settle()
    assert world.debts == [older]


def test_sessions_of_another_identity_do_not_pay(world: World) -> None:
    modest = world.connection("b", own=200, of_identity=300)
    modest.unlinked_since = 1.0
    modest.book_retained(100)
    modest.settle()
    greedy = [world.connection("a", own=200, of_identity=300) for _ in range(2)]
    for account, size in zip(greedy, (170, 160), strict=True):
        account.book_retained(size)
        account.settle()
    assert world.debts == [greedy[0]]


def test_nobody_pays_for_what_was_released_meanwhile(world: World) -> None:
    first, second = (world.connection("a", own=300, of_identity=300) for _ in range(2))
    stream, other = world.stream(first), world.stream(second)
    stream.book(280)
    first.settle()
    # Less than what settles by itself.
    stream.release(100)
    other.book(50)
    assert second.settle() == world.module.IDENTITY
    assert world.debts == []
    assert world.room == [first]
    first.settle()
    assert second in world.room
    assert second.settle() == world.module.FINE


def test_what_the_link_holds_is_counted_while_there_is_one(world: World) -> None:
    # THREATS 40, 86
    connection = world.connection()
    connection.book_link(30)
    connection.book_waiting(50)
    connection.book_unread(7)
    connection.book_link(40)
    connection.book_waiting(20)
    connection.book_unread(5)
    assert (connection.incomplete, connection.retained, connection.held) == (40, 20, 65)
    connection.lose_link(5.0)
    assert (connection.incomplete, connection.retained, connection.held) == (0, 0, 0)
    assert (connection.unread, connection.unlinked_since) == (0, 5.0)


def test_waiting_makes_no_sense_if_only_reading_can_release_most(world: World) -> None:
    connection = world.connection()
    stream = world.stream(connection)
    stream.book(30)
    connection.book_incomplete(20)
    connection.book_retained(10)
    assert not connection.is_stuck
    connection.book_incomplete(1)
    assert connection.is_stuck
