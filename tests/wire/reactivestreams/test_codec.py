from __future__ import annotations

import json
from pathlib import Path

import pytest

from weirpool import LocalError, Payload, PayloadRun
from weirpool.wire.reactivestreams.codec import (
    EXTENDED,
    LAYOUTS,
    MAX_VARINT,
    NAMES,
    Message,
    Type,
    encode,
    next_head,
    next_run,
    packed_run,
    part_head,
)

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "reactive-streams-0.json").read_text())
MEANT = [
    Message(Type.CLIENT_HELLO),
    Message(Type.SUBSCRIBE, 1, 0, b"ticks"),
    Message(Type.REQUEST, 1, 128),
    Message(Type.SUBSCRIBED, 1),
    Message(Type.ON_NEXT, 1, 0, b"hello"),
    Message(Type.ON_NEXT, 300, 0, b"\xaa" * 100_000),
    Message(Type.ON_ERROR, 1, 0, b"boom"),
    Message(Type.ON_NEXT_PART, 1, 9, b"\xab\xcd"),
    Message(Type.GOODBYE, 0, 0, b"bye"),
]


@pytest.mark.parametrize(("vector", "message"), list(zip(VECTORS, MEANT, strict=True)), ids=lambda each: str(each)[:30])
def test_vectors(vector: dict[str, object], message: Message) -> None:
    raw = encode(message)
    assert len(raw) == vector["bytes"]
    assert raw.hex().startswith(str(vector["hex"]))
    note = str(vector["note"])
    assert not note or note == f"overhead {len(raw) - len(message.data)} B"


def test_every_type_has_a_layout_and_a_name() -> None:
    assert LAYOUTS.keys() | EXTENDED.keys() == set(Type) == NAMES.keys()
    assert [NAMES[type] for type in sorted(LAYOUTS)] == [
        "clientHello", "serverHello", "subscribe", "request", "cancel", "subscribed", "onNext", "onComplete",
        "onError", "onNextPacked", "onNextPart", "onNextLastPart", "goodbye",
    ]  # fmt: skip


def overhead(subscriber: int, length: int) -> int:
    return len(encode(Message(Type.ON_NEXT, subscriber, 0, bytes(length)))) - length


def test_overhead_is_that_of_the_profile() -> None:
    table = [
        (subscriber, length, overhead(subscriber, length))
        for subscriber in (1, 127, 128, 16_383)
        for length in (0, 127, 128, 16_383, 16_384, 2_097_151)
    ]
    # Packed messaging: "1 byte (message code) + 1-2 bytes (subscriber id) + 1-3 bytes (payload length) = 3-6 bytes".
    assert {each for *_, each in table} == {3, 4, 5, 6}
    page = (Path(__file__).parents[3] / "docs" / "reference" / "rs-0.md").read_text()
    rows = {subscriber: [each for first, _, each in table if first == subscriber] for subscriber in (1, 128)}
    assert f"| 1 to 127 | {' | '.join(map(str, rows[1][1::2]))} | 2 |" in page
    assert f"| 128 to 16,383 | {' | '.join(map(str, rows[128][1::2]))} | 3 |" in page
    assert (len(encode(Message(Type.ON_NEXT, 127, 0, b"1234"), 4)), len(next_head(16_383, -1))) == (2 + 4, 3)
    packed = packed_run(1, PayloadRun.fixed(bytes(8 * 7500), 8), 0, 7500)
    assert f"subscriber 1 have an overhead of {len(packed) - 8 * 7500} bytes" in page


def test_run_is_encoded_like_its_elements() -> None:
    payloads = [Payload(b"x" * number) for number in (0, 1, 127, 128, 3)]
    run = PayloadRun.of(payloads)
    single = [encode(Message(Type.ON_NEXT, 300, 0, payload.data)) for payload in payloads]
    assert next_run(300, run, 1, 5) == b"".join(single[1:])
    assert single[3] == next_head(300, 128) + payloads[3].data


@pytest.mark.parametrize("gap", [b"", b"between"])
def test_elements_at_any_offset_are_packed(gap: bytes) -> None:
    payloads = [Payload(bytes((number,)) * 4, gap or None) for number in range(5)]
    raw = packed_run(2, PayloadRun.of(payloads), 1, 4)
    data = b"".join(payload.data for payload in payloads[1:4])
    assert raw == encode(Message(Type.ON_NEXT_PACKED, 2, 3, data), 4) == b"\x0a\x02\x03" + data


def test_part_has_a_head() -> None:
    for type, last in ((Type.ON_NEXT_PART, False), (Type.ON_NEXT_LAST_PART, True)):
        assert part_head(1, 9, 2, last) + b"ab" == encode(Message(type, 1, 9, b"ab"))


@pytest.mark.parametrize(
    ("message", "size", "wrong"),
    [
        (Message(99), 0, "unknown message type 99"),
        (Message(Type.REQUEST, -1, 1), 0, "subscriber of request is -1"),
        (Message(Type.REQUEST, 1, MAX_VARINT + 1), 0, "demand of request is"),
        (Message(Type.ON_NEXT, 1, 0, b"abc"), 4, "element of onNext has 3 bytes; it must have 1 \\* 4"),
        (Message(Type.ON_NEXT_PACKED, 1, 2, b"abcd"), 4, "4 bytes; it must have 2 \\* 4"),
        (Message(Type.ON_NEXT_PACKED, 1, 2, b"abcd"), 0, "fixed element size"),
    ],
)
def test_invalid_messages_are_refused(message: Message, size: int, wrong: str) -> None:
    with pytest.raises(LocalError, match=wrong):
        encode(message, size)


def test_messages_are_compared_by_their_fields() -> None:
    assert Message(Type.CANCEL, 1) == Message(Type.CANCEL, 1) != Message(Type.CANCEL, 2)
    assert len({Message(Type.CANCEL, 1), Message(Type.CANCEL, 1)}) == 1
    assert Message(Type.CANCEL, 1) != 1
    assert repr(Message(Type.ON_ERROR, 1, 0, b"boom")) == "<onError 1 0 b'boom' ()>"
