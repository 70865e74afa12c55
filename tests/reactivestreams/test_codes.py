from __future__ import annotations

import pytest

from penstock import ApplicationError, Canceled, Rejected
from penstock.reactivestreams.codes import error_of, fitting, text_of


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


def test_control_characters_of_a_peer_are_escaped() -> None:
    # THREATS 18.
    error = error_of(b"[0x301] \x1b[2J\xc2\x9b red")
    assert (error.message, error.data) == ("\\x1b[2J\\x9b red", b"\x1b[2J\xc2\x9b red")
    assert error_of(b"a\tb\nc\x07").message == "a\tb\nc\\x07"


def test_text_is_cut_between_characters() -> None:
    assert fitting("ab\u00e9", 3) == b"ab"
    assert fitting("ab\u00e9", 4) == "ab\u00e9".encode()
    assert fitting("\ud800", 4) == b"?"
