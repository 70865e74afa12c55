from __future__ import annotations

from weirpool.bridging.kinds import MAX_LEARNED, RouteKinds
from weirpool.kinds import ANY, Kind


def test_declared_kinds_are_not_guessed() -> None:
    kinds = RouteKinds({"a": Kind.CALL, "b": Kind.STREAM})
    assert [kinds.kind_of(route) for route in "abc"] == [Kind.CALL, Kind.STREAM, ANY]
    assert [kinds.is_call(route) for route in "abc"] == [True, False, False]
    assert [kinds.may_be_call(route) for route in "abc"] == [False, False, True]


def test_learned_calls_are_bounded() -> None:
    kinds = RouteKinds({})
    for number in range(MAX_LEARNED + 10):
        kinds.learn_call(str(number))
    assert not kinds.is_call("0")
    assert kinds.is_call("10")
    # A learned route is still any kind: its service may have changed.
    assert kinds.kind_of("10") == ANY
