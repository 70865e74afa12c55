from __future__ import annotations

import pytest

from tests.accounts import World
from tests.builds import Build


@pytest.fixture
def world(build: Build) -> World:
    return World(build)


def test_connection_retires_when_its_consumers_have_taken_all(world: World) -> None:
    connection = world.connection()
    stream = world.stream(connection)
    stream.book(10)
    connection.settle()
    world.ledger.retire(connection)
    stream.release(9)
    assert world.ledger.process.held == 1
    stream.release(1)
    assert connection.group is None and world.ledger.process.members == set()


def test_identities_do_not_share_a_limit(world: World) -> None:
    greedy, other = world.connection("a", of_identity=50), world.connection("b", of_identity=50)
    greedy.book(51)
    other.book(50)
    assert (greedy.settle(), other.settle()) == (world.module.IDENTITY, world.module.FINE)


def test_connections_without_an_address_are_identities_of_their_own(world: World) -> None:
    first, second = world.connection(of_identity=50), world.connection(of_identity=50)
    first.book(40)
    second.book(40)
    assert (first.settle(), second.settle()) == (world.module.FINE, world.module.FINE)
    assert world.ledger.identities == {}


def test_identity_may_change(world: World) -> None:
    connection = world.connection("192.0.2.1")
    connection.book(10)
    connection.settle()
    world.ledger.join(connection, "alice", world._settings())
    assert list(world.ledger.identities) == ["alice"]
    assert (connection.group.held, world.ledger.process.held) == (10, 10)


# The process. THREATS 87


def test_smallest_limit_of_open_connections_applies(world: World) -> None:
    large = world.connection("a", of_identity=100, of_process=1_000, incomplete=200)
    small, other = (world.connection("a", of_identity=60, of_process=600, incomplete=50) for _ in range(2))
    process = world.ledger.process
    for connection in (other, small):
        assert (large.group.limit, process.limit, process.incomplete_limit) == (60, 600, 50)
        world.ledger.leave(connection)
    assert (large.group.limit, process.limit, process.incomplete_limit) == (100, 1_000, 200)
    world.ledger.leave(large)
    assert (process.limit, process.incomplete_limit) == (0, world.module.UNLIMITED)


def test_connections_that_have_left_hold_nothing(world: World) -> None:
    connections = [world.connection(name) for name in ("a", "a", "", "b")]
    for connection in connections:
        connection.book(10)
        connection.settle()
        connection.book(5)
    assert world.ledger.process.held == 40
    for connection in connections:
        world.ledger.leave(connection)
        world.ledger.leave(connection)
    assert (world.ledger.process.held, world.ledger.identities, world.ledger.process.members) == (0, {}, set())


# Demand. THREATS 84


def test_connections_that_leave_are_not_incomplete(world: World) -> None:
    account = world.connection("a", incomplete=100)
    other = world.connection("b", incomplete=50)
    assert world.ledger.process.incomplete_limit == 50
    account.book_incomplete(90)
    account.settle()
    world.ledger.leave(account)
    world.ledger.leave(other)
    assert (world.ledger.process.incomplete, world.ledger.process.held) == (0, 0)


def test_snapshot_shows_every_level(world: World) -> None:
    first, second = (world.connection("a", of_process=5_000) for _ in range(2))
    other = world.connection("b")
    stream = world.stream(first)
    stream.book(90)
    first.book_incomplete(20)
    second.book_retained(30)
    other.book_retained(50)
    for account in (first, second, other):
        account.settle()
    snapshot = world.ledger.snapshot()
    assert (snapshot.held_bytes, snapshot.peak_bytes, snapshot.limit_bytes) == (190, 190, 5_000)
    assert (snapshot.incomplete_bytes, snapshot.retained_bytes) == (20, 80)
    assert (snapshot.largest_identity_bytes, snapshot.largest_connection_bytes) == (140, 110)
    assert (snapshot.identities, snapshot.connections, snapshot.paused_connections) == (2, 3, 1)


def test_snapshot_of_an_empty_ledger_is_zero(world: World) -> None:
    snapshot = world.ledger.snapshot()
    values = [getattr(snapshot, name) for name in snapshot.__slots__ if name != "payments_by_limit"]
    assert {*values, *snapshot.payments_by_limit.values()} == {0}


def test_connection_that_retires_keeps_nothing_of_its_session(world: World) -> None:
    connection = world.connection()
    connection.book_incomplete(10)
    connection.book_retained(20)
    connection.book_unread(30)
    connection.settle()
    world.ledger.retire(connection)
    assert (connection.held, connection.group, world.ledger.process.held) == (0, None, 0)


def test_retired_connection_counts_only_what_its_consumers_may_take(world: World) -> None:
    connection = world.connection()
    connection.book_retained(20)
    connection.book(3)
    connection.settle()
    world.ledger.retire(connection)
    assert (connection.group.held, world.ledger.process.held) == (3, 3)
    connection.release(3)
    assert (connection.group, world.ledger.process.held) == (None, 0)


def test_another_connection_pays_when_the_payer_has_left(world: World) -> None:
    # THREATS 87
    accounts = [world.connection(of_process=500, own=1_000) for _ in range(3)]
    for account, size in zip(accounts, (450, 440, 430), strict=True):
        account.book_incomplete(size)
        account.settle()
    assert set(world.debts) == {accounts[0]}
    world.debts.clear()
    world.ledger.leave(accounts[0])
    assert world.debts == [accounts[1]]
    world.ledger.leave(accounts[1])
    assert world.debts == [accounts[1]]


def test_identity_exists_until_its_last_connection_has_left(world: World) -> None:
    first, second = (world.connection("a") for _ in range(2))
    world.ledger.leave(first)
    assert list(world.ledger.identities) == ["a"] and world.ledger.process.members == {second.group}
    world.ledger.leave(second)
    assert world.ledger.identities == {} and world.ledger.process.members == set()


def test_connection_that_has_left_does_not_wait(world: World) -> None:
    greedy, waiting = (world.connection("a", of_identity=50) for _ in range(2))
    for connection, size in ((greedy, 60), (waiting, 40)):
        connection.book(size)
        connection.settle()
    world.ledger.leave(waiting)
    greedy.release(60)
    greedy.settle()
    assert waiting not in world.room


def test_payer_is_not_replaced_when_a_neighbor_leaves(world: World) -> None:
    # THREATS 87
    payer, neighbor, bystander = (world.connection("a", own=1_000, of_identity=100) for _ in range(3))
    for connection, size in ((payer, 60), (neighbor, 50)):
        connection.book_incomplete(size)
        connection.settle()
    assert world.debts == [payer]
    world.ledger.leave(bystander)
    assert world.debts == [payer]
    payer.book_incomplete(-20)
    neighbor.settle()
    assert world.debts == [payer, payer]


def test_unclaimed_bytes_count_for_their_address(build: Build) -> None:
    # THREATS 86
    ledger = build.module("weirpool.ledger")
    settings = build.module("weirpool.settings").Settings(max_connection_bytes=100)
    dropped: list[int] = []
    held = [ledger.Unclaimed("192.0.2.1", settings, lambda number=number: dropped.append(number)) for number in (0, 1)]
    before = ledger.LEDGER.process.held
    held[0].count(0)
    assert "192.0.2.1" not in ledger.LEDGER.identities
    held[0].count(60)
    held[1].count(30)
    held[0].count(50)
    group = ledger.LEDGER.identities["192.0.2.1"]
    assert (held[0].size, group.held, group.incomplete, ledger.LEDGER.process.held - before) == (50, 80, 80, 80)
    held[0].count(101)
    assert dropped == [0]
    payments = ledger.LEDGER.payments
    held[0].count(0)
    assert ledger.LEDGER.payments == payments + 1
    del held
    assert "192.0.2.1" not in ledger.LEDGER.identities and ledger.LEDGER.process.held == before


def test_unclaimed_bytes_are_counted_again_after_a_complete_message(build: Build) -> None:
    # THREATS 86
    ledger = build.module("weirpool.ledger")
    unclaimed = ledger.Unclaimed("192.0.2.1", build.module("weirpool.settings").Settings(), list)
    before, payments = ledger.LEDGER.process.incomplete, ledger.LEDGER.payments
    assert unclaimed.size == 0
    for size in (10, 0, 7):
        unclaimed.count(size)
        assert (unclaimed.size, ledger.LEDGER.process.incomplete - before) == (size, size)
    unclaimed.count(0)
    assert ledger.LEDGER.payments == payments


@pytest.mark.parametrize(
    "limit", ["max_connection_bytes", "max_identity_bytes", "max_process_bytes", "max_process_reassembly_bytes"]
)
def test_peer_without_a_session_pays_for_each_limit(build: Build, limit: str) -> None:
    # THREATS 86, 87
    ledger = build.module("weirpool.ledger")
    settings = build.module("weirpool.settings").Settings(**{limit: 100})
    dropped: list[int] = []
    reached, exceeding = (
        ledger.Unclaimed("192.0.2.1", settings, lambda number=number: dropped.append(number)) for number in (0, 1)
    )
    before = dict(ledger.LEDGER.payments_by_limit)
    reached.count(1)
    exceeding.count(99)
    assert dropped == []
    exceeding.count(101)
    assert set(dropped) == {1}
    exceeding.count(0)
    reached.count(0)
    assert {name: number for name, number in ledger.LEDGER.payments_by_limit.items() if number != before[name]} == {
        limit: before[limit] + 1
    }
