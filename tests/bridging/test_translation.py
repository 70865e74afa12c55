from __future__ import annotations

import pytest

from weirpool.bridging.counters import Counters
from weirpool.bridging.translation import Side, Translation
from weirpool.connection import Connection
from weirpool.errors import (
    ApplicationError,
    Canceled,
    ConnectError,
    Invalid,
    LeaseMissing,
    LinkLost,
    LocalError,
    Rejected,
    UnsupportedKind,
)
from weirpool.payload import Payload
from weirpool.protocols import text_form
from weirpool.wire.river.values import decode_value, encode_value


def side(protocol: str, metadata_mime: str = "") -> Side:
    return Side(Connection(protocol, "tcp://there", True, metadata_mime=metadata_mime), None)


def translation(source: str, target: str, counters: Counters | None = None) -> Translation:
    return Translation(side(source), side(target), counters or Counters())


@pytest.mark.parametrize(
    ("error", "cls", "text"),
    [
        (UnsupportedKind("no channels"), Rejected, "no channels"),
        (LeaseMissing("x"), Rejected, "no lease"),
        (ConnectError("refused"), Rejected, "cannot be reached: refused"),
        (LinkLost("gone"), Canceled, "may have been done: gone"),
        (LocalError("not JSON"), Invalid, "cannot be sent with river: not JSON"),
    ],
)
def test_errors_of_this_side_become_errors_for_the_client(error: Exception, cls: type, text: str) -> None:
    translated = translation("rsocket", "river").error(error)
    assert type(translated) is cls
    assert text in str(translated)


@pytest.mark.parametrize(
    ("source", "target", "error", "code", "message"),
    [
        ("rsocket", "reactive-streams", ApplicationError(0x301, "m", b"d"), 0x301, "m"),
        ("rsocket", "river", ApplicationError("NO", "m", b"{}"), 0x201, "[NO] m"),
        ("river", "rsocket", ApplicationError(0x301, "m", b"\xff"), "0x301", "m"),
        ("river", "rsocket", Rejected(message="m"), 0x202, "m"),
        ("rsocket", "river", Invalid("INVALID_REQUEST", "m"), 0x204, "m"),
    ],
)
def test_codes_fit_the_protocol_of_the_client(
    source: str, target: str, error: ApplicationError, code: int | str, message: str
) -> None:
    translated = translation(source, target).error(error)
    assert isinstance(translated, ApplicationError)
    assert (translated.code, translated.message) == (code, message)


BODY = b'{"code":"GONE","message":"no such thing","extras":{"n":1}}'


def encoded(protocol: str, codec: str) -> Side:
    """Return a side whose data is in a codec."""
    found = text_form(protocol, {"codec": codec})
    return Side(Connection(protocol, "tcp://there", True, data_mime=f"application/{codec}"), found)


@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_named_errors_keep_their_code_and_extras(codec: str) -> None:
    river = encoded("river", codec)
    extras = encode_value({"n": 1}, codec)
    named = ApplicationError("GONE", "no such thing", extras)
    to_number = Translation(side("rsocket"), river, Counters()).error(named)
    assert isinstance(to_number, ApplicationError)
    assert (to_number.code, to_number.data) == (0x201, BODY)
    to_word = Translation(river, side("rsocket"), Counters()).error(ApplicationError(0x201, BODY.decode(), BODY))
    assert isinstance(to_word, ApplicationError)
    assert (to_word.code, to_word.message, to_word.data) == ("GONE", "no such thing", extras)
    other = Translation(encoded("river", {"json": "msgpack"}.get(codec, "json")), river, Counters()).error(named)
    assert isinstance(other, ApplicationError)
    assert decode_value(other.data, {"json": "msgpack"}.get(codec, "json")) == {"n": 1}


@pytest.mark.parametrize(
    "data", [BODY.replace(b"GONE", b"CANCEL"), b'{"code":"","message":"m"}', b'{"code":1}', b"text"]
)
def test_data_that_names_no_error_of_the_application_is_not_read(data: bytes) -> None:
    translated = translation("river", "rsocket").error(ApplicationError(0x201, "text", data))
    assert isinstance(translated, ApplicationError)
    assert (translated.code, translated.message, translated.data) == ("0x201", "text", b"text")


def test_error_whose_extras_cannot_be_converted_keeps_its_text() -> None:
    river, rsocket = encoded("river", "msgpack"), side("rsocket")
    text = '{"code":"GONE","message":"no such thing","extras":"\\ud800"}'
    to_word = Translation(river, rsocket, Counters()).error(ApplicationError(0x201, text, text.encode()))
    assert isinstance(to_word, ApplicationError)
    assert to_word.message == to_word.data.decode() == text
    to_number = Translation(rsocket, river, Counters()).error(ApplicationError("GONE", "no such thing", b"\x81\1\2"))
    assert isinstance(to_number, ApplicationError)
    assert (str(to_number), to_number.data) == ("[GONE] no such thing", b"no such thing")


def test_words_of_a_peer_cannot_control_terminals() -> None:
    data = b'{"code":"A\\u001b[2J\\n","message":"m\\u001b[2J"}'
    translated = translation("river", "rsocket").error(ApplicationError(0x201, "", data))
    assert str(translated) == r"[A\x1b[2J\n] m\x1b[2J"


def test_other_errors_are_not_hidden() -> None:
    mistake = ZeroDivisionError()
    assert translation("rsocket", "river").error(mistake) is mistake


def test_metadata_of_items_needs_a_place() -> None:
    counters, item = Counters(), Payload(b"x", b"m")
    assert translation("rsocket", "reactivesocket-0.2", counters).received(item) is item
    assert counters.metadata_dropped == 0
    assert translation("rsocket", "river", counters).sent(item) == Payload(b"x")
    assert counters.metadata_dropped == 1
