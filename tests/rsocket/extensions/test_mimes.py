from __future__ import annotations

import pytest

from weirpool.rsocket.extensions.mimes import COMPOSITE, NAMES, NUMBERS, OCTET_STREAM, ROUTING, read_mime, write_mime


# From the table of the extension "Well-known MIME Types".
@pytest.mark.parametrize(
    ("number", "name"),
    [
        (0x00, "application/avro"),
        (0x05, "application/json"),
        (0x06, OCTET_STREAM),
        (0x10, "audio/mpeg"),
        (0x21, "text/plain"),
        (0x2A, "application/x-flatbuffers"),
        (0x7A, "message/x.rsocket.mime-type.v0"),
        (0x7C, "message/x.rsocket.authentication.v0"),
        (0x7E, ROUTING),
        (0x7F, COMPOSITE),
    ],
)
def test_numbers_are_those_of_the_extension(number: int, name: str) -> None:
    assert NAMES[number] == name
    assert NUMBERS[name] == number


def test_names_are_unique_and_fit_their_fields() -> None:
    assert len(NUMBERS) == len(NAMES)
    assert all(0 <= number <= 0x7F and name.isascii() and len(name) <= 128 for number, name in NAMES.items())


@pytest.mark.parametrize("number", range(128))
def test_every_number_round_trips(number: int) -> None:
    data = bytes((0x80 | number,))
    mime, end = read_mime(data, 0)
    assert (mime, end) == (NAMES.get(number, number), 1)
    assert write_mime(mime) == write_mime(number) == data


def test_literal_name_is_written_as_a_name() -> None:
    data = bytes((len(ROUTING) - 1,)) + ROUTING.encode()
    mime, end = read_mime(data, 0)
    assert (mime, end) == (ROUTING, len(data))
    assert hash(mime) == hash(ROUTING)
    assert write_mime(mime) == data
    assert write_mime(ROUTING) == b"\xfe"
