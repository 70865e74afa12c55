from __future__ import annotations

import pytest

from penstock.rsocket.mimes import COMPOSITE, NAMES, NUMBERS, OCTETS, ROUTING


# From the table of the extension "Well-known MIME Types".
@pytest.mark.parametrize(
    ("number", "name"),
    [
        (0x00, "application/avro"),
        (0x05, "application/json"),
        (0x06, OCTETS),
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


def test_no_name_stands_twice_and_all_fit_their_fields() -> None:
    assert len(NUMBERS) == len(NAMES)
    assert all(0 <= number <= 0x7F and name.isascii() and len(name) <= 128 for number, name in NAMES.items())
