from __future__ import annotations

import msgspec
import pytest

from weirpool.errors import SessionStoreError
from weirpool.river.stored import SENDING, VERSION, Opening, Record, Retained

OPENING = Opening(VERSION, "json", "SERVER", "client", b"digest", False, "session")


def record(first: int, *messages: bytes, **more: object) -> bytes:
    fields: dict[str, object] = {"ack": 0, "opened": {}, "ended": [], **more}
    return msgspec.msgpack.encode(Record(first=first, messages=list(messages), **fields))  # type: ignore[arg-type]


def test_retained_combines_records() -> None:
    retained = Retained(
        [
            record(3, b"a", ack=1, opened={"x": SENDING}, opening=OPENING),
            record(4, b"b", b"c", ack=5, opened={"y": SENDING}, ended=["x"]),
            record(6, ack=7),
        ]
    )
    assert (retained.first, retained.seq, retained.messages) == (3, 6, [b"a", b"b", b"c"])
    assert (retained.ack, retained.streams, retained.opening) == (7, {"y": SENDING}, OPENING)


def test_retained_omits_acknowledged_messages() -> None:
    retained = Retained([record(0, b"a", opening=OPENING), record(5, b"f")])
    assert (retained.first, retained.messages) == (5, [b"f"])


@pytest.mark.parametrize(
    "records",
    [
        [],
        [b"junk"],
        [record(0)],
        [record(0, opening=Opening(VERSION + 1, "json", "", "", b"", False, ""))],
        [record(0, opening=OPENING), b"\xc0"],
        [record(0, opening=OPENING).replace(b"SERVER", b"SERVE\xff")],
        [record(-1, opening=OPENING)],
        [record(0, opening=OPENING, ack=1 << 53)],
        [record(0, opening=OPENING, opened={"a": 4})],
    ],
)
def test_invalid_log_is_rejected(records: list[bytes]) -> None:
    with pytest.raises(SessionStoreError, match="River"):
        Retained(records)
