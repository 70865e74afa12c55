from __future__ import annotations

from typing import Any

import pytest

from tests.builds import Build
from tests.sim.pair import Pair
from weirpool.reactivestreams.lifecycle import TRANSITIONS, SessionState


def test_every_state_is_reached() -> None:
    reached = {SessionState.NEW}
    for _ in TRANSITIONS:
        reached |= {after for (before, _), after in TRANSITIONS.items() if before in reached}
    assert reached == set(SessionState)


def test_closed_session_stays_closed() -> None:
    assert all(before != SessionState.CLOSED for before, _ in TRANSITIONS)


def test_session_passes_through_its_states(build: Build) -> None:
    link = build.module("weirpool.reactivestreams.link")
    made: list[tuple[str, str]] = []

    class Noted(dict[Any, Any]):
        def __getitem__(self, key: Any) -> Any:
            made.append((key[0].name, key[1]))
            return super().__getitem__(key)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(link, "TRANSITIONS", Noted(link.TRANSITIONS))
        pair = Pair(build, dialect="reactive-streams-0")
        pair.client.close(pair.now)
        pair.drive()
    assert sorted(made) == sorted(
        [
            *[("NEW", "hello")] * 2,
            ("OPENED", "close()"),
            ("DRAINING", "streams ended"),
            ("LEAVING", "finished"),
            ("OPENED", "finished"),
        ]
    )
