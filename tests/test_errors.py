from __future__ import annotations

import inspect
import pickle
import re

import pytest

from weirpool import errors
from weirpool.errors import (
    ApplicationError,
    Canceled,
    FrameError,
    Invalid,
    LocalError,
    Mismatch,
    Rejected,
    SetupRejected,
)

CLASSES = [getattr(errors, name) for name in errors.__all__]


def test_docstring_has_the_class_tree() -> None:
    drawn = re.findall(r"^( *)\* :exc:`(\w+)`", errors.__doc__ or "", re.MULTILINE)
    assert sorted(name for _, name in drawn) == sorted(errors.__all__)
    path: list[str] = []
    for indent, name in drawn:
        depth = len(indent) // 2
        path[depth:] = [name]
        if depth:
            assert getattr(errors, name).__bases__ == (getattr(errors, path[depth - 1]),)


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_every_error_is_documented_and_can_be_pickled(error: type[Exception]) -> None:
    # Spark's workers pickle their errors for the driver.
    assert issubclass(error, errors.WeirpoolError)
    assert inspect.getdoc(error)
    made = error(0x301, "text") if issubclass(error, ApplicationError) else error("text")
    back = pickle.loads(pickle.dumps(made))
    assert (type(back), str(back)) == (error, str(made))
    assert "text" in str(made)


def test_application_error_has_code_text_and_bytes() -> None:
    assert str(ApplicationError(0x301, "boom")) == "[0x301] boom"
    assert str(ApplicationError("NOT_FOUND")) == "[NOT_FOUND]"
    assert ApplicationError(0x301, "boom").data == b"boom"
    assert ApplicationError(0x301, "boom", b"raw").data == b"raw"
    assert [error().code for error in (ApplicationError, Rejected, Canceled, Invalid)] == [0x201, 0x202, 0x203, 0x204]


def test_frame_error_shows_its_offset() -> None:
    error = FrameError("no such type", 5, ignorable=True)
    assert (str(error), error.offset, error.ignorable) == ("byte 5: no such type", 5, True)


def test_session_error_has_the_wire_code() -> None:
    assert SetupRejected("no", 0x003).code == 0x003
    assert not issubclass(LocalError, errors.SessionError)


def test_mismatch_shows_locations() -> None:
    assert Mismatch("no json").problems == [("", "no json")]
    error = Mismatch(problems=[("/a", "wrong"), ("", "worse")], total=5)
    assert str(error) == "/a: wrong; data: worse, and 3 more"
    assert (error.total, pickle.loads(pickle.dumps(error)).problems) == (5, error.problems)


def test_rejection_by_a_full_server_is_temporary() -> None:
    refused = SetupRejected.full("max_connections (1) are open", 3)
    assert refused.temporary and refused.code == 3 and "max_connections" in str(refused)
    assert not SetupRejected("no", 3).temporary


@pytest.mark.parametrize("text", ["no hello from the peer within 5 s", "the peer said no hello within 5 s"])
def test_a_rejection_for_a_late_hello_is_temporary(text: str) -> None:
    # The second text is sent by servers of some revisions before the release of 0.1.0.
    assert SetupRejected(f"the server refused us: {text}").temporary
