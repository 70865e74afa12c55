from __future__ import annotations

from types import SimpleNamespace

from weirpool.river.sessions import Sessions


def kept(session_id: str, peer: str = "c", identity: bytes = b"") -> SimpleNamespace:
    return SimpleNamespace(session_id=session_id, peer=peer, identity=identity)


def test_session_is_found_only_by_its_client() -> None:
    sessions: Sessions[SimpleNamespace] = Sessions(2)
    session = kept("s", "c", b"key")
    sessions.add(session)
    assert sessions.get("s", "c", b"key") is session
    for asked in (("t", "c", b"key"), ("s", "d", b"key"), ("s", "c", b""), ("s", "c", b"other")):
        assert sessions.get(*asked) is None
    assert sessions.taken("s") and not sessions.full
    sessions.forget(session, None)
    assert len(sessions) == 0


def test_others_are_the_sessions_of_the_same_client() -> None:
    sessions: Sessions[SimpleNamespace] = Sessions(10)
    old, new, other, stranger = kept("1"), kept("2"), kept("3", "d"), kept("4", "c", b"key")
    for session in (old, other, stranger, new):
        sessions.add(session)
    assert sessions.others(new) == [old]


def test_forget_ignores_another_session_of_that_id() -> None:
    sessions: Sessions[SimpleNamespace] = Sessions(1)
    sessions.add(kept("s"))
    sessions.forget(kept("s"), None)
    assert len(sessions) == 1 and sessions.full
