"""The engine finds planted defects that are behind several branches, because it keeps inputs that reach new lines."""

from __future__ import annotations

from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from fuzz.engine import Engine
from fuzz.sensors import Lines
from fuzz.targets import Difference, Target

FOLDER = Path(__file__).parent
SECONDS = 20.0


def depth_of(data: bytes) -> int:
    """Return how many of the first bytes are the right ones: each is a branch of its own."""
    if len(data) < 4 or data[0] != 0x7F:
        return 0
    if data[1] != 0xFF:
        return 1
    if data[2] != 0x80:
        return 2
    if data[3] != 0x01:
        return 3
    return 4


def target(outcome: Any, builds: tuple[str, ...] = ("compiled", "plain")) -> Target:
    """Return a target that decodes with `outcome`, which gets the name of the build."""
    return Target(outcome, {name: SimpleNamespace(name=name) for name in builds})  # type: ignore[misc]


def engine(aim: Target) -> Engine:
    """Return an engine that observes this file."""
    return Engine(aim, [Lines(FOLDER)], Random(1))


def test_difference_behind_four_branches_is_found() -> None:
    def outcome(build: Any, data: bytes) -> int:
        depth = depth_of(data)
        return depth if depth < 4 or build.name == "plain" else 0

    fuzzer = engine(target(outcome))
    with pytest.raises(Difference, match="the builds disagree"):
        fuzzer.fuzz(SECONDS)
    # The branches before it were found one by one.
    assert {depth_of(data) for data in fuzzer.corpus} >= {0, 1, 2, 3}


def test_unexpected_error_is_found() -> None:
    def outcome(build: Any, data: bytes) -> int:
        return 1 // (2 - depth_of(data))

    with pytest.raises(ZeroDivisionError):
        engine(target(outcome)).fuzz(SECONDS)


def test_addresses_are_no_difference() -> None:
    target(lambda build, data: [object(), float("nan")]).check(b"")
    with pytest.raises(Difference):
        target(lambda build, data: [object(), build.name]).check(b"")


def test_judge_is_asked_about_each_input() -> None:
    def judge(build: Any, data: bytes, found: Any) -> None:
        if found == 1:
            raise Difference("the independent decoder disagrees")

    aim = target(lambda build, data: depth_of(data))
    judged = Target(aim.outcome, aim.builds, judge=judge)
    with pytest.raises(Difference, match="independent"):
        engine(judged).fuzz(SECONDS)


def test_inputs_that_reach_nothing_new_are_not_kept() -> None:
    fuzzer = engine(target(lambda build, data: depth_of(data)))
    fuzzer.add([b"", b"other", b"", b"\x7f123"])
    assert fuzzer.corpus == [b"", b"\x7f123"]
    assert fuzzer.runs == 4


def test_input_is_written_down_before_it_runs() -> None:
    seen: list[bytes] = []

    def outcome(build: Any, data: bytes) -> None:
        assert seen[-1] == data

    fuzzer = Engine(target(outcome), [], Random(1), seen.append)
    fuzzer.add([b"a", b"bc"])
    assert seen == [b"a", b"bc"]
