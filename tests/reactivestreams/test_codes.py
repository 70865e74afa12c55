from __future__ import annotations

import pytest

from weirpool import ApplicationError, Canceled, Invalid, Rejected, TypedError
from weirpool.reactivestreams.codes import error_of, fitting, text_of


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ApplicationError(0x201, "boom"), b"boom"),
        (ApplicationError(0x301, "boom"), b"[0x301] boom"),
        (ApplicationError(0xFFFFFFFF, "two\nlines"), b"[0xFFFFFFFF] two\nlines"),
        (ApplicationError(0x301), b"[0x301]"),
        (ApplicationError(0x201), b"[0x201]"),
        (Rejected(message="no"), b"[0x202] no"),
        (Canceled(message="late"), b"[0x203] late"),
        (Invalid(message="bad"), b"[0x204] bad"),
        # These look like codes and are not.
        (ApplicationError(0x201, "[0x301] boom"), b"[0x201] [0x301] boom"),
        (ApplicationError(0x201, "[0x301"), b"[0x301"),
    ],
)
def test_errors_are_sent_with_their_codes(error: ApplicationError, text: bytes) -> None:
    assert text_of(error, 100) == text
    back = error_of(text)
    assert (type(back), back.code, back.message, back.data) == (type(error), error.code, error.message, error.data)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        # This protocol has only texts for errors.
        (ApplicationError("word", "boom"), b"[word] boom"),
        # Only the text of an ApplicationError is sent.
        (KeyError("a secret"), b"the handler failed"),
    ],
)
def test_other_errors_have_a_fixed_text(error: Exception, text: bytes) -> None:
    assert text_of(error, 100) == text
    back = error_of(text)
    assert (type(back), back.code, back.message) == (ApplicationError, 0x201, text.decode())


class Full(TypedError, code="FULL"):
    extras: int


def test_data_is_sent_if_it_is_text() -> None:
    assert text_of(Full("no", 5), 100) == b'{"code":"FULL","message":"no","extras":5}'
    assert text_of(Invalid(message="bad", data=b'{"errors":[]}'), 100) == b'[0x204] {"errors":[]}'
    assert error_of(b'[0x204] {"errors":[]}').data == b'{"errors":[]}'
    assert text_of(ApplicationError(0x301, "bad", b"\xff"), 100) == b"[0x301] bad"


def test_data_that_is_too_long_is_replaced_by_the_message() -> None:
    assert text_of(Full("no", 5), 50) == b"[FULL] no"
    assert text_of(ApplicationError(0x301, "bad", b"x" * 100), 100) == b"[0x301] bad"
    assert text_of(ApplicationError(0x301, "x" * 100), 20) == b"[0x301] " + b"x" * 12


@pytest.mark.parametrize("cls", [Rejected, Canceled, Invalid])
def test_class_is_sent_when_the_code_is_a_string(cls: type[ApplicationError]) -> None:
    again = error_of(text_of(cls("MINE", "why"), 100))
    assert (type(again), again.message) == (cls, "[MINE] why")


def test_control_characters_of_a_peer_are_escaped() -> None:
    # THREATS 18.
    error = error_of(b"[0x301] \x1b[2J\xc2\x9b red")
    assert (error.message, error.data) == ("\\x1b[2J\\x9b red", b"\x1b[2J\xc2\x9b red")
    assert error_of(b"a\tb\nc\x07").message == "a\tb\nc\\x07"


def test_text_is_cut_between_characters() -> None:
    assert fitting("ab\u00e9", 3) == b"ab"
    assert fitting("ab\u00e9", 4) == "ab\u00e9".encode()
    assert fitting("\ud800", 4) == b"?"
