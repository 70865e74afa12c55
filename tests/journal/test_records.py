from __future__ import annotations

import pytest

from weirpool.journal.records import FRAME_BYTES, FrameBuffer, Record, decode, frames

UUID = "01234567-89ab-cdef-0123-456789abcdef"
ONE = Record(UUID, 0, 700, [b"header", memoryview(b"body")])
TWO = Record(UUID, 500, 0, [b""])


def encode(number: int, records: list[Record]) -> bytes:
    return bytes(FrameBuffer().encode(number, records))


def read(data: bytes) -> list[tuple[int, list[tuple[int, int, bytes]]]]:
    return [
        (number, [(each.segment, each.offset, b"".join(each.chunks)) for each in decode(content)])
        for number, content in frames(memoryview(data))
    ]


def test_frames_are_read_as_they_were_written() -> None:
    assert ONE.size == 10
    assert read(encode(7, [ONE, TWO]) + encode(8, [TWO])) == [
        (7, [(0, 700, b"headerbody"), (500, 0, b"")]),
        (8, [(500, 0, b"")]),
    ]
    assert [each.uuid for _, content in frames(memoryview(encode(0, [ONE]))) for each in decode(content)] == [UUID]


def test_a_frame_may_be_shorter_than_the_one_before() -> None:
    buffer = FrameBuffer()
    arrow = Record(UUID, 0, 700, [memoryview(b"bytes of Arrow").cast("b")])
    for records in ([ONE, TWO, ONE], [TWO], [ONE] * 9, [arrow], []):
        assert buffer.encode(3, records) == encode(3, records)


def test_frames_end_where_one_is_torn() -> None:
    first, second = encode(1, [TWO]), encode(2, [ONE])
    for size in range(len(second)):
        assert [number for number, _ in read(first + second[:size])] == [1]
        assert [number for number, _ in read(first + second[:size] + bytes(4_096))] == [1]


@pytest.mark.parametrize("offset", [0, 8, 16, 24, FRAME_BYTES, FRAME_BYTES + 40])
def test_frames_end_where_a_bit_flips(offset: int) -> None:
    data = bytearray(encode(1, [TWO]) + encode(2, [ONE]))
    data[len(encode(1, [TWO])) + offset] ^= 1
    assert [number for number, _ in read(bytes(data))] == [1]


def test_frames_end_at_those_of_an_earlier_use_of_the_file() -> None:
    earlier = b"".join(encode(number, [ONE]) for number in range(4))
    again = encode(9, [ONE]) + encode(10, [ONE])
    assert [number for number, _ in read(again + earlier[len(again) :])] == [9, 10]
