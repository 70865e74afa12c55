from __future__ import annotations

import pytest
from msgspec import Raw, Struct

from weirpool import TypedError
from weirpool.errors import ApplicationError, Canceled, FrameError, Invalid, LocalError, Rejected
from weirpool.river.codes import Result, TooLarge, error_of, failure_of, refusal, rejection
from weirpool.wire.river.codec import CODECS
from weirpool.wire.river.values import decode_value, encode_value

RETRIABLE = {
    codec: encode_value({"retriable": True, "totalErrors": 0, "firstValidationErrors": []}, codec) for codec in CODECS
}


@pytest.mark.parametrize("codec", CODECS)
def test_errors_are_decoded_as_encoded(codec: str) -> None:
    known = CODECS[codec]
    for error in (
        ApplicationError("ODD", "text"),
        ApplicationError("ODD", "text", encode_value({"n": 1}, codec)),
        Invalid("INVALID_REQUEST", "no"),
        Canceled("CANCEL", "no"),
        ApplicationError("UNCAUGHT_ERROR", "no"),
        Rejected("INVALID_REQUEST", "no", RETRIABLE[codec]),
    ):
        flags, body = failure_of(known, error)
        result = known.value(Raw(body), Result)
        again = error_of(known, result.payload)
        assert not result.ok and type(again) is type(error)
        assert (again.code, again.message, again.data) == (error.code, error.message, error.data)
        assert flags == (8 if error.code == "ODD" else 4)


class Extras(Struct):
    data: bytes


class Named(TypedError, code="NAMED"):
    extras: Extras


@pytest.mark.parametrize("codec", CODECS)
def test_extras_of_an_error_are_a_value(codec: str) -> None:
    known = CODECS[codec]
    payload = decode_value(failure_of(known, Named("m", Extras(b"\xff")))[1], codec)["payload"]
    assert payload == {"code": "NAMED", "message": "m", "extras": {"data": b"\xff"}}
    assert "extras" not in decode_value(failure_of(known, Named("m"))[1], codec)["payload"]


@pytest.mark.parametrize(
    ("error", "code"),
    [(Rejected(message="m"), "INVALID_REQUEST"), (Invalid(message="m"), "INVALID_REQUEST"), (Canceled(), "CANCEL")],
)
def test_errors_without_a_code_get_one_of_rivers(error: Exception, code: str) -> None:
    flags, body = failure_of(CODECS["json"], error)
    assert flags == 4 and decode_value(body, "json")["payload"]["code"] == code


def test_invalid_errors_become_errors() -> None:
    for body in (b"5", b"{}", b'{"code":1}'):
        assert error_of(CODECS["json"], Raw(body)).code == "UNCAUGHT_ERROR"
    assert error_of(CODECS["json"], Raw(b'{"code":"A"}')).message == ""
    with pytest.raises(FrameError):
        CODECS["json"].value(Raw(b"[]"), Result)


def test_unencodable_error_raises_local_error() -> None:
    with pytest.raises(LocalError):
        failure_of(CODECS["json"], ApplicationError("A", "m", b"{"))
    with pytest.raises(LocalError):
        refusal(CODECS["json"], "A", "\udc80")


def test_control_characters_of_a_peer_are_escaped() -> None:
    codec = CODECS["json"]
    error = error_of(codec, Raw(b'{"code":"ODD\\u001b[2J\\n","message":"a\\u001b[2J\\u009b"}'))
    assert error.message == "a\\x1b[2J\\x9b"
    assert error.code == "ODD\\x1b[2J\\n"


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("error", [Rejected(message="later"), Rejected("INVALID_REQUEST", "later")])
def test_rejection_by_a_handler_is_retriable(codec: str, error: Rejected) -> None:
    known = CODECS[codec]
    flags, body = failure_of(known, error)
    again = error_of(known, known.value(Raw(body), Result).payload)
    assert (type(again), again.code, again.message, flags) == (Rejected, "INVALID_REQUEST", "later", 4)


@pytest.mark.parametrize("codec", CODECS)
def test_rejection_with_a_code_of_its_own_keeps_it(codec: str) -> None:
    known = CODECS[codec]
    again = error_of(known, known.value(Raw(failure_of(known, Rejected("FULL", "later"))[1]), Result).payload)
    assert (type(again), again.code, again.message) == (Rejected, "FULL", "later")


@pytest.mark.parametrize("codec", CODECS)
def test_rejection_is_retriable(codec: str) -> None:
    known = CODECS[codec]
    payload = decode_value(rejection(known, "too many"), codec)["payload"]
    # The reference validates extras against its schema.
    assert payload["code"] == "INVALID_REQUEST"
    assert payload["extras"] == {"retriable": True, "totalErrors": 0, "firstValidationErrors": []}
    again = error_of(known, known.value(rejection(known, "too many"), Result).payload)
    assert type(again) is Rejected and again.message == "too many"


@pytest.mark.parametrize("extras", [b"5", b"[]", b'{"retriable":1}', b'{"totalErrors":1,"firstValidationErrors":[]}'])
def test_other_extras_are_not_retriable(extras: bytes) -> None:
    body = b'{"code":"INVALID_REQUEST","message":"","extras":' + extras + b"}"
    assert type(error_of(CODECS["json"], Raw(body))) is Invalid
    assert type(error_of(CODECS["json"], Raw(body.replace(b"INVALID_REQUEST", b"ODD")))) is ApplicationError


def test_too_large_names_the_size() -> None:
    flags, body = failure_of(CODECS["json"], TooLarge("a message of 5 bytes"))
    assert flags == 4
    assert decode_value(body, "json")["payload"] == {"code": "UNCAUGHT_ERROR", "message": "a message of 5 bytes"}


@pytest.mark.parametrize("codec", CODECS)
def test_retriable_extras_of_an_application_are_not_a_rejection(codec: str) -> None:
    known = CODECS[codec]
    body = known.encode_value({"code": "FULL", "message": "half done", "extras": {"retriable": True}})
    assert type(error_of(known, Raw(body))) is ApplicationError


@pytest.mark.parametrize("codec", CODECS)
def test_numeric_codes_come_back_as_numbers(codec: str) -> None:
    known = CODECS[codec]
    for code in (0x201, 0x301, 0xFFFFFFFE):
        again = error_of(known, known.value(Raw(failure_of(known, ApplicationError(code, "m"))[1]), Result).payload)
        assert (again.code, again.message) == (code, "m")
    for text in ("0x3", "0x123456789", "0xabc", "x0x301"):
        assert error_of(known, Raw(known.encode_value({"code": text, "message": ""}))).code == text


@pytest.mark.parametrize("codec", CODECS)
def test_json_data_of_an_error_is_sent_with_both_codecs(codec: str) -> None:
    known = CODECS[codec]
    for error in (ApplicationError("A", "m", b'{"x": 2}'), Invalid(message="m", data=b'{"x": 2}')):
        again = error_of(known, known.value(Raw(failure_of(known, error)[1]), Result).payload)
        assert (type(again), decode_value(again.data, codec)) == (type(error), {"x": 2})
