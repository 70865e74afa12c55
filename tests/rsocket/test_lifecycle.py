from __future__ import annotations

from typing import Any

import pytest

from tests.builds import Build
from tests.sim.pair import Pair
from weirpool.rsocket.dialect import RSOCKET_1_0
from weirpool.rsocket.lifecycle import TRANSITIONS, Lifecycle, SessionState
from weirpool.rsocket.link import TRANSITIONS as LINKS
from weirpool.rsocket.link import LinkState
from weirpool.settings import Settings


def lifecycle_of(token: bytes | None = None) -> Lifecycle:
    return Lifecycle(Settings(), RSOCKET_1_0, True, token, lambda error: None)


@pytest.mark.parametrize(("before", "cause"), TRANSITIONS)
def test_every_transition_of_the_table_is_possible(before: SessionState, cause: str) -> None:
    life = lifecycle_of()
    life.state = int(before)
    life.move(cause)
    assert life.state == TRANSITIONS[before, cause]


def test_transition_that_is_not_in_the_table_is_an_error() -> None:
    life = lifecycle_of()
    life.move("finished")
    for cause in {cause for _, cause in TRANSITIONS}:
        with pytest.raises(KeyError):
            life.move(cause)


@pytest.mark.parametrize("table", [TRANSITIONS, LINKS])
def test_every_state_is_reached(table: dict[tuple[Any, str], Any]) -> None:
    first, *_ = type(next(iter(table.values())))
    reached = {first}
    for _ in table:
        reached |= {after for (before, _), after in table.items() if before in reached}
    assert reached == set(type(first))


def test_position_is_reported_if_resumable() -> None:
    life = lifecycle_of(b"token")
    life.received = 10
    assert (life.position(), lifecycle_of().position()) == (10, 0)
    life.reported = 7
    assert life.position() == 7


def test_session_passes_through_its_states(build: Build) -> None:
    lifecycle, links = build.module("weirpool.rsocket.lifecycle"), build.module("weirpool.rsocket.link")
    made: list[tuple[str, str]] = []

    class Noted(dict[Any, Any]):
        def __getitem__(self, key: Any) -> Any:
            made.append((key[0].name, key[1]))
            return super().__getitem__(key)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lifecycle, "TRANSITIONS", Noted(lifecycle.TRANSITIONS))
        patch.setattr(links, "TRANSITIONS", Noted(links.TRANSITIONS))
        pair = Pair(build)
        pair.client.close(pair.now)
        pair.drive()
    assert sorted(made) == sorted(
        [
            ("DOWN", "SETUP sent"),
            ("DOWN", "accepted"),
            ("HANDSHAKING", "SETUP received"),
            *[("NEW", "SETUP")] * 2,
            ("OPENED", "close()"),
            ("DRAINING", "finished"),
            ("OPENED", "finished"),
        ]
    )
    assert LinkState.UP.name == "UP"
