"""What a connection gives up when it has to pay, and for which limit."""

from __future__ import annotations

import pytest

from tests.aio.test_budget import World
from tests.builds import Build
from tests.waiting import turns


async def paid(world: World, limit: str) -> int:
    """Settle, let the time for waiting pass, and return how often the connection has paid for a limit."""
    before = world.ledger.payments_by_limit[limit]
    total = world.ledger.payments
    world.settle()
    world.account.group.expired()
    await turns(3)
    made: int = world.ledger.payments_by_limit[limit] - before
    assert world.ledger.payments - total == made
    return made


async def test_unfinished_items_of_all_connections_have_a_limit(build: Build) -> None:
    # THREATS 47, 87
    world = World(build, max_process_reassembly_bytes=100)
    world.session.sheds = True
    world.account.book_incomplete(101)
    assert await paid(world, "max_process_reassembly_bytes") > 0
    assert "max_process_reassembly_bytes (100)" in str(world.session.verbs("shed")[0][1])
    assert world.session.verbs("close") == []
    world.ledger.leave(world.account)


async def test_session_without_a_link_ends_to_make_room(build: Build) -> None:
    # THREATS 30, 88
    world = World(build, max_identity_bytes=800)
    world.session.sheds = True
    world.account.unlinked_since = 1.0
    world.account.book_retained(801)
    assert await paid(world, "max_identity_bytes") > 0
    assert "keeps 801 bytes for a client without a link" in str(world.session.verbs("close")[0][1])
    assert world.session.verbs("shed") == []
    world.ledger.leave(world.account)


@pytest.mark.parametrize(("of_stream", "of_session"), [(200, 610), (450, 440)])
async def test_larger_one_of_stream_and_session_pays(build: Build, of_stream: int, of_session: int) -> None:
    # THREATS 87
    world = World(build, max_identity_bytes=800)
    world.session.sheds = True
    items = world.stream(1, of_stream)
    world.account.book_incomplete(of_session)
    await paid(world, "max_identity_bytes")
    assert items.over == (of_stream > of_session)
    assert bool(world.session.verbs("shed")) == (of_session > of_stream)
    assert world.session.verbs("close") == []
    world.ledger.leave(world.account)


async def test_session_ends_if_it_has_nothing_to_drop(build: Build) -> None:
    # THREATS 87
    world = World(build, max_identity_bytes=800)
    world.account.book_incomplete(801)
    await paid(world, "max_identity_bytes")
    assert [verb for verb, *_ in world.session.verbs("shed", "close")[:2]] == ["shed", "close"]
    # The peer may still read the reason.
    assert "abort" not in world.link.told
    world.ledger.leave(world.account)


async def test_link_that_holds_most_is_aborted(build: Build) -> None:
    # THREATS 86
    world = World(build, max_identity_bytes=800)
    world.session.sheds = True
    world.link.unfinished = 810
    world.budget.count_link()
    await paid(world, "max_identity_bytes")
    assert world.session.verbs("close") and "abort" in world.link.told
    world.ledger.leave(world.account)
