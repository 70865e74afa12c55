from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st


@given(st.none() | st.binary(max_size=60), st.binary(max_size=60), st.integers(1, 20))
def test_fragments_contain_metadata_first(builds, metadata, data, size) -> None:
    for build in builds.values():
        payload = build.module("weirpool.payload").Payload(data, metadata)
        parts = list(build.module("weirpool.core.fragments").fragments(payload, size))
        assert b"".join(part[1] for part in parts) == data
        heads = [part[0] for part in parts if part[0] is not None]
        assert (b"".join(heads) if heads else None) == metadata
        assert [part[2] for part in parts] == [True] * (len(parts) - 1) + [False]
        assert all(len(part[0] or b"") + len(part[1]) <= size for part in parts)
        # RSocket 1.0, Fragmentation: metadata MUST be whole before data begins.
        with_data = [index for index, part in enumerate(parts) if part[1]]
        with_metadata = [index for index, part in enumerate(parts) if part[0]]
        assert not with_data or not with_metadata or with_metadata[-1] <= with_data[0]


def reassembly(build, **limits):
    settings = build.module("weirpool.settings").Settings(**limits)
    account = build.module("weirpool.account").Account(settings.max_connection_bytes)
    return build.module("weirpool.core.fragments").Reassembly(settings, account)


def test_reassembly_is_the_inverse(build) -> None:
    module = build.module("weirpool.core.fragments")
    payload = build.module("weirpool.payload").Payload(b"d" * 1000, b"m" * 300)
    items = reassembly(build)
    for index, (metadata, data, _) in enumerate(module.fragments(payload, 64)):
        if index == 0:
            items.begin(7, "head", metadata, data, 1.0)
        else:
            items.add(7, metadata, data)
    partial = items.finish(7)
    assert partial.payload() == payload
    assert (partial.head, items.held, items.partials) == ("head", 0, {})


@pytest.mark.parametrize(
    ("limits", "data"),
    [
        ({"max_payload_bytes": 100}, b"x" * 60),  # THREATS 47
        ({"max_fragments": 3}, b"x"),  # THREATS 47
        ({"max_empty_fragments": 3}, b""),  # THREATS 48
    ],
)
def test_items_beyond_limits_are_dropped(build, limits, data) -> None:
    error = build.module("weirpool.errors").LimitExceeded
    items = reassembly(build, **limits)
    with pytest.raises(error):
        items.begin(1, None, None, data, 0.0)
        for _ in range(10):
            items.add(1, None, data)
    assert (items.held, len(items)) == (0, 0)


@pytest.mark.parametrize(
    ("limit", "why"), [("max_reassembly_bytes", "unfinished"), ("max_process_reassembly_bytes", "all")]
)
def test_oldest_items_exceed_the_limit_first(build, limit, why) -> None:
    # THREATS 47, 49
    items = reassembly(build, **{limit: 350})
    for stream in (5, 3, 1):
        items.begin(stream, None, None, b"x" * 60, 0.0)
    stream, error = items.excess()
    assert (stream, why in str(error)) == (5, True)
    items.drop(stream)
    assert items.excess() is None


def test_fragments_count_as_incomplete(build) -> None:
    # THREATS 30, 47
    settings = build.module("weirpool.settings").Settings()
    account = build.module("weirpool.account").Account(1_000)
    items = build.module("weirpool.core.fragments").Reassembly(settings, account)
    items.begin(1, None, None, b"x" * 200, 0.0)
    items.begin(3, None, None, b"x" * 300, 0.0)
    assert account.incomplete == account.held == items.held > 500
    assert items.largest() == 3
    items.drop(3)
    assert account.incomplete == account.held == items.held > 200
    items.clear()
    assert account.incomplete == account.held == 0
    assert items.largest() is None


def test_overdue_returns_items_that_have_timed_out(build) -> None:
    items = reassembly(build, reassembly_timeout=10.0)
    items.begin(1, None, None, b"x", 0.0)
    items.begin(3, None, None, b"x", 5.0)
    assert items.deadline() == 10.0
    assert items.overdue(9.9) == []
    assert items.overdue(12.0) == [1]
    items.drop(1)
    items.drop(1)
    assert items.deadline() == 15.0
    items.clear()
    assert items.deadline() is None


def test_many_fragments_cost_linear_memory(build) -> None:
    # THREATS 51
    items = reassembly(build)
    tracemalloc.start()
    items.begin(1, None, None, b"x" * 1024, 0.0)
    for _ in range(20_000):
        items.add(1, None, bytes(1024))
    assert len(items.finish(1).payload().data) == 20_001 * 1024
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * 20_001 * 1024
