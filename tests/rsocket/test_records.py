from __future__ import annotations

import msgspec
import pytest

from weirpool.errors import SessionStoreError
from weirpool.events import Established
from weirpool.payload import Payload
from weirpool.rsocket.records import RECEIVING, SENDING, VERSION, Opening, Record, Retained

OPENING = Opening.of(Established(Payload(b"who", b"m"), "a/b", "c/d", True, False), "rsocket-1.0", b"id", True)
FRAMES = [b"\0\0\x06" + b"%06d" % number for number in range(6)]


def record(received: int, sent: int, frames: int, **changes: object) -> Record:
    """Return a record with frames of 6 bytes from position `sent` on."""
    first = sent // 6
    made = Record(received, sent, b"".join(FRAMES[first : first + frames]), 2, {}, [])
    return msgspec.structs.replace(made, **changes)


def retained(*records: Record, resume_bytes: int = 1000) -> Retained:
    return Retained(map(msgspec.msgpack.encode, records), resume_bytes, 3)


def test_opening_becomes_the_event_it_was_made_of() -> None:
    event = OPENING.event()
    assert (event.payload.data, event.payload.metadata) == (b"who", b"m")
    assert (event.metadata_mime, event.data_mime, event.strict, event.understood) == ("a/b", "c/d", True, False)


def test_records_add_up_to_a_session() -> None:
    found = retained(
        record(10, 0, 2, opening=OPENING, opened={1: SENDING, 3: SENDING | RECEIVING}),
        record(20, 12, 1, opened={3: RECEIVING, 5: SENDING}, ended=[1]),
        record(30, 18, 0, next_id=8),
    )
    assert found.opening == OPENING
    assert (found.received, found.next_id, found.replay.first, found.replay.end) == (30, 8, 0, 18)
    assert found.streams == {3: RECEIVING, 5: SENDING}
    assert found.replay.since(6) == FRAMES[1:3]


def test_old_frames_are_discarded_one_by_one() -> None:
    found = retained(record(0, 0, 5, opening=OPENING), resume_bytes=12)
    assert (found.replay.first, found.replay.since(18)) == (18, FRAMES[3:5])


def test_unrecorded_output_restarts_the_replay() -> None:
    found = retained(record(0, 0, 1, opening=OPENING), record(0, 12, 2))
    assert (found.replay.first, found.replay.end, found.replay.since(12)) == (12, 24, FRAMES[2:4])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"\x80",
        msgspec.msgpack.encode(record(0, 0, 1))[:-1],
        msgspec.msgpack.encode(record(0, 0, 1, opening=OPENING)).replace(b"a/b", b"a/\xff"),
        msgspec.msgpack.encode(record(-1, 0, 1, opening=OPENING)),
        msgspec.msgpack.encode(record(1 << 63, 0, 1, opening=OPENING)),
        msgspec.msgpack.encode(record(0, 0, 1, opening=OPENING, next_id=0)),
        msgspec.msgpack.encode(record(0, 0, 1, opening=OPENING, opened={1 << 31: SENDING})),
        msgspec.msgpack.encode(record(0, 0, 1, opening=OPENING, opened={1: 4})),
    ],
)
def test_invalid_records_are_refused(data: bytes) -> None:
    with pytest.raises(SessionStoreError, match="RSocket session log has an invalid record"):
        Retained([data], 1000, 3)


@pytest.mark.parametrize(
    ("frames", "why"), [(b"\0\0\5" + bytes(5), "invalid frame"), (FRAMES[0][:-1], "within a frame of 8 bytes")]
)
def test_invalid_frames_are_refused(frames: bytes, why: str) -> None:
    with pytest.raises(SessionStoreError, match=why):
        retained(msgspec.structs.replace(record(0, 0, 0, opening=OPENING), frames=frames))


def test_record_of_another_version_is_refused() -> None:
    later = record(0, 0, 0, opening=msgspec.structs.replace(OPENING, version=VERSION + 1))
    with pytest.raises(SessionStoreError, match=f"this release reads version {VERSION}"):
        retained(later)


def test_log_without_a_set_up_is_refused() -> None:
    for records in ([], [record(0, 0, 1)]):
        with pytest.raises(SessionStoreError, match="does not begin with a whole session"):
            retained(*records)
