from __future__ import annotations

import hmac

import msgspec
import pytest

from weirpool.checkpoints import dissect, join, split
from weirpool.errors import LimitExceeded, LocalError, ResumeRejected, SetupRejected
from weirpool.kinds import Kind
from weirpool.rsocket.resume import (
    VERSION,
    Checkpoint,
    PartialState,
    SessionStore,
    StreamState,
    decode_checkpoint,
    encode_checkpoint,
)
from weirpool.rsocket.session import RSocketSession
from weirpool.settings import Settings

CHECKPOINT = Checkpoint(
    version=VERSION,
    received=2**40,
    sent=7,
    retained=[b"first", b"second one", b"third"],
    next_id=5,
    streams=[StreamState(3, Kind.STREAM, 1, 2, 10, 0)],
    partials=[PartialState(3, 0x0A, 0x80, 0, None, b"half")],
)


def test_checkpoint_round_trips() -> None:
    assert decode_checkpoint(encode_checkpoint(CHECKPOINT)) == CHECKPOINT


@pytest.mark.parametrize("secrets", range(4))
def test_frames_with_possible_secrets_are_private(secrets: int) -> None:
    # THREATS 100
    encoded = encode_checkpoint(CHECKPOINT, secrets)
    public, private = dissect(encoded)
    assert private.messages == CHECKPOINT.retained[:secrets]
    assert [frame in public for frame in CHECKPOINT.retained] == [index >= secrets for index in range(3)]
    assert decode_checkpoint(encoded) == CHECKPOINT


@pytest.mark.parametrize("secrets", range(1, 4))
def test_checkpoint_without_private_part_begins_after_it(secrets: int) -> None:
    # The server has confirmed the frames that are no longer kept.
    public, _ = split(encode_checkpoint(CHECKPOINT, secrets))
    kept = decode_checkpoint(join(public, b""))
    assert kept.retained == CHECKPOINT.retained[secrets:]
    assert kept.sent == 7 + sum(map(len, CHECKPOINT.retained[:secrets]))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"\x80",
        encode_checkpoint(CHECKPOINT)[:-1],
        b"\xdf" + b"\xff" * 8,
        join(b"", b""),
        # An unknown field that is nested too deeply.
        join(b"\x81\xa1x" + b"\x91" * 5_000 + b"\xc0", b""),
    ],
)
def test_invalid_checkpoints_are_refused(data: bytes) -> None:
    with pytest.raises(LocalError, match="checkpoint"):
        decode_checkpoint(data)


@pytest.mark.parametrize(
    "change",
    [
        {"received": -1},
        {"sent": 1 << 63},
        {"next_id": 0},
        {"streams": [StreamState(0, Kind.STREAM, 1, 2, 10, 0)]},
        {"streams": [StreamState(3, 9, 1, 2, 10, 0)]},  # type: ignore[arg-type]
        {"streams": [StreamState(3, Kind.STREAM, 5, 2, 10, 0)]},
        {"streams": [StreamState(3, Kind.STREAM, 1, 2, -1, 0)]},
        {"partials": [PartialState(3, 0x01, 0x80, 0, None, b"half")]},
        {"partials": [PartialState(3, 0x0A, 1 << 10, 0, None, b"half")]},
    ],
    ids=repr,
)
def test_impossible_numbers_in_a_checkpoint_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(LocalError, match="invalid session checkpoint"):
        decode_checkpoint(encode_checkpoint(msgspec.structs.replace(CHECKPOINT, **change)))


def test_retained_bytes_that_are_no_frame_are_refused() -> None:
    with pytest.raises(LocalError, match="retained frame 0"):
        RSocketSession.restore(Settings(), encode_checkpoint(CHECKPOINT), b"secret")


def test_checkpoint_of_another_version_is_refused() -> None:
    later = msgspec.structs.replace(CHECKPOINT, version=VERSION + 1)
    with pytest.raises(LocalError, match=f"this release reads version {VERSION}"):
        decode_checkpoint(encode_checkpoint(later))


def test_partial_item_keeps_its_first_frame() -> None:
    head = PartialState(3, 0x07, 0x80, 9, b"m", b"half").head()
    assert (head.type, head.stream_id, head.flags, head.request_n) == (0x07, 3, 0x80, 9)


def test_store_returns_added_sessions() -> None:
    store: SessionStore[str] = SessionStore(2)
    assert store.add(b"one", "first")
    assert store.add(b"two", "second")
    assert (store.get(b"one"), store.get(b"two"), len(store)) == ("first", "second", 2)
    store.remove(b"one")
    store.remove(b"one")
    with pytest.raises(ResumeRejected, match="no session with this token"):
        store.get(b"one")


def test_token_in_use_does_not_replace_its_session() -> None:
    # THREATS 27
    store: SessionStore[str] = SessionStore(2)
    assert store.add(b"one", "first")
    assert not store.add(b"one", "thief")
    assert store.get(b"one") == "first"


def test_token_of_an_ended_session_is_rejected() -> None:
    store: SessionStore[str] = SessionStore(2)
    assert store.add(b"one", "first", b"me")
    store.remove(b"one", LimitExceeded("no room"))
    with pytest.raises(SetupRejected, match="the session has ended: no room"):
        store.add(b"one", "second", b"me")
    # Other clients do not receive the reason.
    assert store.add(b"one", "other", b"other")


def test_only_the_owner_receives_a_session() -> None:
    # THREATS 28: a stolen token without the certificate of its owner.
    store: SessionStore[str] = SessionStore(2)
    store.add(b"one", "first", b"certificate")
    assert store.get(b"one", b"certificate") == "first"
    for identity in (b"", b"another"):
        with pytest.raises(ResumeRejected, match="no session with this token"):
            store.get(b"one", identity)


def test_full_store_accepts_no_session() -> None:
    # THREATS 30
    store: SessionStore[str] = SessionStore(1)
    assert store.add(b"one", "first")
    assert not store.add(b"two", "second")
    assert len(store) == 1


def test_a_lookup_costs_the_same_with_many_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    store: SessionStore[bytes] = SessionStore(1000)
    tokens = [b"%016d" % number for number in range(1000)]
    for token in tokens[:-1]:
        assert store.add(token, token)
    compared: list[tuple[bytes, bytes]] = []
    compare = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: (compared.append((a, b)), compare(a, b))[1])
    assert not store.add(tokens[0], b"thief")
    assert store.add(tokens[-1], tokens[-1])
    assert store.get(tokens[500]) == tokens[500]
    with pytest.raises(ResumeRejected):
        store.get(b"unknown")
    # At most one for each of the four.
    assert len(compared) <= 4


def test_tokens_are_found_by_their_digests() -> None:
    # THREATS 28: the time of a lookup must not tell how much of a token is right.
    store: SessionStore[str] = SessionStore(1)
    assert store.add(b"token", "session")
    assert b"token" not in store._sessions
