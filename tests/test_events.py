from __future__ import annotations

from typing import Any

import pytest

from tests.builds import Build


@pytest.fixture
def events(build: Build) -> Any:
    return build.module("weirpool.events")


def test_event_repr_shows_attributes(build: Build, events: Any) -> None:
    payload = build.module("weirpool.payload").Payload(b"x")
    event = events.ItemReceived(3, payload, True)
    assert repr(event) == f"ItemReceived(stream_id=3, done=True, payload={payload!r})"
    assert repr(events.Completed(5)) == "Completed(stream_id=5)"


def test_session_events_have_stream_id_0(build: Build, events: Any) -> None:
    payload = build.module("weirpool.payload").Payload()
    assert events.Established(payload, "a/b", "c/d").stream_id == 0
    assert events.Closed(None).stream_id == events.Unlinked(OSError()).stream_id == events.Draining().stream_id == 0


def test_every_event_is_named_by_a_past_participle(events: Any) -> None:
    classes = [name for name in events.__all__ if isinstance(getattr(events, name), type)]
    assert len(classes) == 14
    for name in classes:
        event = getattr(events, name)
        assert issubclass(event, events.Event) and event.__doc__
        assert name == "Event" or name.endswith("ed") or name == "Draining"
