from __future__ import annotations

import pytest

from weirpool.errors import ApplicationError, Canceled, Invalid, LinkLost, Rejected
from weirpool.rsocket.codes import HANDLER_FAILED, SETUP_CODES, Code, error_of, name_of, wire_of


@pytest.mark.parametrize(
    ("code", "kind"),
    [(0x201, ApplicationError), (0x202, Rejected), (0x203, Canceled), (0x204, Invalid), (0x301, ApplicationError)],
)
def test_codes_are_converted_to_exceptions_and_back(code: int, kind: type[ApplicationError]) -> None:
    error = error_of(code, b"boom")
    assert type(error) is kind
    assert (error.code, error.message, error.data) == (code, "boom", b"boom")
    assert wire_of(error) == (code, b"boom", None)


@pytest.mark.parametrize("code", [0, 0x1FF, 0x300, 0xFFFFFFFE, 0xFFFFFFFF])
def test_unknown_codes_stay_numbers(code: int) -> None:
    assert error_of(code, b"").code == code


def test_invalid_utf8_is_replaced_in_text_and_kept_in_data() -> None:
    # THREATS 18
    error = error_of(0x201, b"a\xff")
    assert (error.message, error.data) == ("a�", b"a\xff")


@pytest.mark.parametrize("code", [0, 1, 0x101, 0x205, 0x300, 0xFFFFFFFF, "NOT_FOUND"])
def test_reserved_codes_are_sent_as_application_error(code: int | str) -> None:
    error = ApplicationError(code, "why")
    assert wire_of(error) == (0x201, str(error).encode(), None)


@pytest.mark.parametrize("code", [0x201, 0x202, 0x203, 0x204, 0x301, 0xFFFFFFFE])
def test_application_codes_are_sent_unchanged(code: int) -> None:
    assert wire_of(ApplicationError(code, "why", b"raw")) == (code, b"raw", None)


def test_string_codes_are_sent_in_the_data() -> None:
    body = b'{"code":"NOT_FOUND","message":"gone"}'
    assert wire_of(ApplicationError("NOT_FOUND", "gone", body)) == (0x201, body, None)


def test_a_rejection_with_another_code_is_still_one() -> None:
    # The peer may retry it. The first argument is easily taken for the message.
    assert wire_of(Rejected("busy")) == (0x202, b"[busy]", None)
    assert wire_of(Rejected("BUSY", "later", b"{}")) == (0x202, b"{}", None)


@pytest.mark.parametrize("error", [ValueError("password=1"), LinkLost("10.0.0.7 is gone"), KeyError("x")])
def test_text_of_other_errors_is_not_sent(error: Exception) -> None:
    # THREATS 46
    assert wire_of(error) == (0x201, HANDLER_FAILED.encode(), None)


def test_texts_are_not_null_terminated() -> None:
    # RSocket 1.0, ERROR Frame. Data of another format is sent as it is.
    assert wire_of(ApplicationError(0x301, "no\0\0"))[1] == b"no"
    assert wire_of(ApplicationError("NO", "no\0"))[1] == b"[NO] no"
    assert wire_of(ApplicationError(0x301, "no", b"\1\0"))[1] == b"\1\0"


def test_codes_have_the_names_of_the_specification() -> None:
    assert name_of(Code.REJECTED_RESUME) == "REJECTED_RESUME"
    assert name_of(0x301) == "0x00000301"
    assert {code for code in Code if code < 0x100} == SETUP_CODES


def test_drafts_have_more_application_codes() -> None:
    # ReactiveSocket 0.2, Error Codes: 0x205 to 0xFFFFFFFE.
    assert wire_of(ApplicationError(0x205, "mine"), 0x205) == (0x205, b"mine", None)
    assert wire_of(ApplicationError(0x205, "mine"), 0x301)[0] == 0x201


def test_metadata_of_errors_is_sent_and_received() -> None:
    error = error_of(0x202, b"no", b"why")
    assert error.metadata == b"why"
    assert wire_of(error) == (0x202, b"no", b"why")


@pytest.mark.parametrize("cls", [Rejected, Canceled, Invalid])
def test_class_is_sent_when_the_code_is_a_string(cls: type[ApplicationError]) -> None:
    code, data, _ = wire_of(cls("MINE", "why"))
    again = error_of(code, data)
    assert (type(again), again.message) == (cls, "[MINE] why")


def test_code_in_the_metadata_is_not_shown() -> None:
    assert error_of(0x202, b"busy", b"[0x202]").metadata is None
    assert error_of(0x202, b"busy", b"[0x203]").metadata == b"[0x203]"
