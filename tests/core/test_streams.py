from __future__ import annotations

import pytest


def test_ids_increase_by_two(build) -> None:
    streams, kind = build.module("weirpool.core.streams"), build.module("weirpool.kinds").Kind
    client, server = streams.StreamTable(1), streams.StreamTable(2)
    assert [client.open_ours(kind.CALL).id for _ in range(3)] == [1, 3, 5]
    assert [server.open_ours(kind.CALL).id for _ in range(3)] == [2, 4, 6]
    assert client.may_be_theirs(2) and not client.may_be_theirs(3) and not client.may_be_theirs(0)


def test_ids_start_again_and_skip_those_in_use(build) -> None:
    # THREATS 35
    streams, kind = build.module("weirpool.core.streams"), build.module("weirpool.kinds").Kind
    table = streams.StreamTable(1)
    first = table.open_ours(kind.STREAM)
    table.next_id = streams.MAX_STREAM_ID
    assert table.open_ours(kind.STREAM).id == streams.MAX_STREAM_ID
    assert table.wrapped
    assert table.open_ours(kind.STREAM).id == 3
    table.close(first)
    table.next_id = 1
    assert table.open_ours(kind.STREAM).id == 1


@pytest.mark.parametrize(("first", "last"), [(1, 0x7FFFFFFF), (2, 0x7FFFFFFE)])
def test_every_id_is_used_before_they_start_again(build, first: int, last: int) -> None:
    streams, kind = build.module("weirpool.core.streams"), build.module("weirpool.kinds").Kind
    table = streams.StreamTable(first)
    table.next_id = last - 4
    assert [table.open_ours(kind.CALL).id for _ in range(2)] == [last - 4, last - 2]
    assert (table.next_id, table.wrapped) == (last, False)
    assert [table.open_ours(kind.CALL).id for _ in range(2)] == [last, first]
    assert table.wrapped


def test_streams_of_this_side_give_the_peer_no_more(build) -> None:
    # `remote` would go below the number that the peer has open, and `max_streams` would not limit it any more.
    streams, kind = build.module("weirpool.core.streams"), build.module("weirpool.kinds").Kind
    table = streams.StreamTable(2)
    theirs = table.open_theirs(1, kind.STREAM)
    for _ in range(3):
        table.close(table.open_ours(kind.CALL))
    table.close(table.restore(8, kind.CALL))
    assert table.remote == 1
    table.close(theirs)
    assert (table.remote, len(table)) == (0, 0)


def test_peers_streams_are_counted(build) -> None:
    streams, kind = build.module("weirpool.core.streams"), build.module("weirpool.kinds").Kind
    table = streams.StreamTable(2)
    theirs = table.open_theirs(1, kind.STREAM)
    table.open_ours(kind.STREAM)
    assert (table.remote, len(table)) == (1, 2)
    table.close(theirs)
    table.close(theirs)
    assert (table.remote, len(table)) == (0, 1)
    assert table.get(1) is None


@pytest.mark.parametrize("ours", [True, False])
def test_signals_end_the_halves_of_the_table(build, ours: bool) -> None:
    streams, kind = build.module("weirpool.core.streams"), build.module("weirpool.kinds").Kind
    halves = build.module("weirpool.core.halves")
    for (signal, by_requester), (ends_requester, ends_responder) in halves.TERMINAL.items():
        stream = streams.Stream(1, kind.CHANNEL, ours)
        over = stream.end(signal, by_requester == ours)
        requester, responder = (stream.outbound, stream.inbound) if ours else (stream.inbound, stream.outbound)
        assert (requester == halves.DONE, responder == halves.DONE) == (ends_requester, ends_responder)
        assert over == stream.over == (ends_requester and ends_responder)


def test_both_sides_may_use_the_same_ids(build) -> None:
    # ReactiveSocket 0.0, Stream Identifiers: an id is only unique for its requester.
    streams, kind = build.module("weirpool.core.streams"), build.module("weirpool.kinds").Kind
    table = streams.StreamTable(1, True)
    ours = table.open_ours(kind.CALL)
    assert table.may_be_theirs(-1) and not table.may_be_theirs(1) and not table.may_be_theirs(0)
    theirs = table.open_theirs(-1, kind.CALL)
    assert (table.get(1), table.get(-1), len(table)) == (ours, theirs, 2)


def test_without_half_close_the_responder_ends_both_halves(build) -> None:
    # ReactiveSocket 0.2, Request Channel.
    streams, kind = build.module("weirpool.core.streams"), build.module("weirpool.kinds").Kind
    signal = build.module("weirpool.core.halves").Signal
    table = streams.StreamTable(1, False, False)
    ours, theirs = table.open_ours(kind.CHANNEL), table.open_theirs(2, kind.CHANNEL)
    assert not ours.end(signal.COMPLETE, True) and ours.end(signal.COMPLETE, False)
    assert not theirs.end(signal.COMPLETE, False) and theirs.end(signal.COMPLETE, True)
    mirrored = table.open_ours(kind.CHANNEL)
    assert mirrored.end(signal.COMPLETE, False) and mirrored.over
