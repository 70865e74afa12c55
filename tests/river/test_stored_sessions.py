from __future__ import annotations

from typing import Any, cast

import pytest

from tests.river.peers import Raw, body_of
from tests.sim.stored import Disk, Logs
from weirpool.errors import SessionStoreError
from weirpool.river.accept import RiverDetector
from weirpool.river.identity import Identity
from weirpool.river.stored import StoredRiverSession
from weirpool.river.stored_sessions import StoredSessions, name_of
from weirpool.session import SessionLogs
from weirpool.settings import Settings


class Kept(Raw):
    """A hand-written client of servers that share a disk."""

    def __init__(self, codec: str = "json", settings: Settings | None = None, disk: Disk | None = None) -> None:
        self.disk = disk or Disk()
        super().__init__(codec, settings)
        self.restart()

    def restart(self) -> None:
        """Start another server process."""
        self.logs: Any = Logs(self.disk)
        self.sessions = StoredSessions(self.settings, cast(SessionLogs, self.logs), self.codec)
        self.link()

    def link(self) -> None:
        self.acceptor = RiverDetector(self.settings, self.identity, self.sessions, StoredRiverSession)
        self.acceptor.link_up(self.now)
        self.session = None


def code(raw: Raw, **fields: Any) -> str | None:
    found: str | None = body_of(raw.shake(**fields)[0], raw.codec)["status"].get("code")
    return found


def test_session_is_found_in_the_next_process() -> None:
    raw = Kept()
    raw.shake()
    raw.restart()
    assert code(raw, expected=1) is None
    assert raw.sessions.taken("session-1")


def test_session_id_is_not_on_the_disk() -> None:
    raw = Kept()
    raw.shake()
    assert list(raw.disk.logs) == [name_of("session-1")]
    assert not any(b"session-1" in record for records in raw.disk.logs.values() for record in records[1:])


@pytest.mark.parametrize("change", ["certificate", "peer", "codec", "server"])
def test_another_client_does_not_get_the_session(change: str) -> None:
    # THREATS 57
    raw = Kept()
    raw.shake()
    raw.restart()
    thief = raw
    if change == "codec":
        thief = Kept("msgpack", disk=raw.disk)
    if change == "server":
        thief.identity = Identity(raw.codec)
    for expected in (1, 0):
        thief.link()
        if change == "certificate":
            thief.acceptor.identity = b"another key"
        fields: dict[str, object] = {}
        if change == "peer":
            fields["from"] = "evil"
        if change == "server":
            fields["to"] = "ANOTHER"
        payload = {
            "type": "HANDSHAKE_REQ",
            "protocolVersion": "v2.0",
            "sessionId": "session-1",
            "expectedSessionState": {"nextExpectedSeq": expected, "nextSentSeq": 0},
        }
        whole = thief.encode({"streamId": "x", "controlFlags": 0, "payload": payload, **fields})
        (answer,) = thief.feed(len(whole).to_bytes(4, "big") + whole)
        assert body_of(answer, thief.codec)["status"]["code"] == "SESSION_STATE_MISMATCH"
    raw.restart()
    assert code(raw, expected=1) is None


def test_session_stays_stored_after_a_mismatch() -> None:
    raw = Kept()
    raw.shake()
    raw.restart()
    assert code(raw, expected=7) == "SESSION_STATE_MISMATCH"
    raw.link()
    assert code(raw, expected=1) is None


def test_damaged_log_is_reported_without_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = Kept()
    raw.shake()
    raw.restart()

    def damaged(name: str) -> None:
        raise SessionStoreError("/secret/place: damaged")

    with monkeypatch.context() as patch:
        patch.setattr(raw.logs, "open", damaged)
        (answer,) = raw.shake(expected=1)
        status = body_of(answer)["status"]
        assert status["code"] == "SESSION_STATE_MISMATCH" and "secret" not in status["reason"]
    raw.disk.logs[name_of("session-1")] = [b"junk"]
    raw.link()
    assert code(raw, expected=1) == "SESSION_STATE_MISMATCH"


def test_sessions_of_earlier_processes_count() -> None:
    raw = Kept(settings=Settings(max_connections=0, max_sessions=1))
    raw.shake()
    raw.restart()
    assert raw.sessions.full and code(raw, session="session-2") == "SESSION_STATE_MISMATCH"
    raw.link()
    assert code(raw, expected=1) is None
