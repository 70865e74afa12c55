"""Set-ups that are late, because of the link or because the server closes. Such a rejection is temporary."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builds import Build
from weirpool import Settings
from weirpool.events import Closed

PROTOCOLS = pytest.mark.parametrize(
    "protocol", ["rsocket", "reactivesocket-0.2", "reactivesocket-0.0", "reactive-streams"]
)
LATE = 30.0


class Meeting:
    """A client whose set-up is in transit, and the detector of a server."""

    def __init__(self, build: Build, protocol: str) -> None:
        protocols = build.module("weirpool.protocols")
        settings = Settings(first_frame_timeout=5.0)
        self.client = protocols.client_session(protocol, Settings(first_frame_timeout=2 * LATE), random=b"t" * 16)
        self.detector = protocols.detectors(protocol, settings)()
        self.client.link_up(0.0)
        self.detector.link_up(0.0)
        self.said = b"".join(self.client.take_output())

    def end(self, farewell: bytes) -> Any:
        """Return the error with which the client ends."""
        self.client.receive(farewell, LATE)
        self.client.link_down(LATE, None)
        return next(event.error for event in self.client.take_events() if type(event).__name__ == Closed.__name__)


@PROTOCOLS
def test_a_set_up_whose_end_comes_too_late_is_a_temporary_refusal(build: Build, protocol: str) -> None:
    meeting = Meeting(build, protocol)
    server = meeting.detector.receive(meeting.said[:-1], 0.0)
    server.handle_timer(LATE)
    assert meeting.end(b"".join(server.take_output())).temporary


@PROTOCOLS
def test_a_server_that_closes_before_the_set_up_has_come_refuses_for_a_time(build: Build, protocol: str) -> None:
    meeting = Meeting(build, protocol)
    error = meeting.end(meeting.detector.farewell)
    # RSocket has no message for it: the link is lost, and a retry may succeed.
    assert isinstance(error, build.module("weirpool.errors").LinkError) or error.temporary
