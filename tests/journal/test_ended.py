from __future__ import annotations

import pytest

from weirpool import ApplicationError, SessionError
from weirpool.journal.ended import session_errors


def test_the_error_of_the_session_is_raised() -> None:
    cause = SessionError("the session ended")
    error = ApplicationError("failed")
    with pytest.raises(SessionError) as raised, session_errors():
        raise error from cause
    assert raised.value is cause


def test_other_errors_stay() -> None:
    for cause in (None, ValueError("value")):
        error = ApplicationError("failed")
        with pytest.raises(ApplicationError) as raised, session_errors():
            raise error from cause
        assert raised.value is error
