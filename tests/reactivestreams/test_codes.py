from __future__ import annotations

import pytest

from penstock import ApplicationError, Rejected
from penstock.reactivestreams.codes import error_of, fitting, text_of


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ApplicationError(0x201, "boom"), b"boom"),
        (ApplicationError(0x301, "boom"), b"[0x301] boom"),
        (ApplicationError("word"), b"[word]"),
        (Rejected(message="no"), b"[0x202] no"),
        # Only an ApplicationError tells the peer its text.
        (KeyError("a secret"), b"the handler failed"),
    ],
)
def test_errors_travel_as_texts(error: Exception, text: bytes) -> None:
    assert text_of(error, 100) == text
    back = error_of(text)
    assert (type(back), back.code, back.message) == (ApplicationError, 0x201, text.decode())


def test_a_text_is_cut_between_characters() -> None:
    assert fitting("ab\u00e9", 3) == b"ab"
    assert fitting("ab\u00e9", 4) == "ab\u00e9".encode()
    assert fitting("\ud800", 4) == b"?"
