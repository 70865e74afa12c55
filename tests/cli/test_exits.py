from __future__ import annotations

import pytest

from weirpool import errors
from weirpool.cli.exits import FAILED, NO_CONNECTION, WRONG_USE, exit_code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ApplicationError(0x301, "boom"), FAILED),
        (errors.Rejected(), FAILED),
        (errors.LeaseMissing("none came"), FAILED),
        (errors.SetupRejected("no"), FAILED),
        (errors.PeerClosed("bye"), FAILED),
        (errors.ProtocolError("what"), FAILED),
        (errors.JournalCorrupt("damaged"), FAILED),
        (errors.LocalError("misused"), WRONG_USE),
        (errors.UrlError("a typo"), WRONG_USE),
        (errors.ConnectError("nobody"), NO_CONNECTION),
        (errors.LinkLost("cut"), NO_CONNECTION),
        (errors.KeepaliveTimeout("silent"), NO_CONNECTION),
    ],
    ids=lambda value: type(value).__name__,
)
def test_code_of_an_error(error: errors.WeirpoolError, code: int) -> None:
    assert exit_code(error) == code


def test_request_that_ended_with_its_session_had_no_connection() -> None:
    error = errors.ApplicationError("UNEXPECTED_DISCONNECT", "gone")
    assert exit_code(error) == FAILED
    error.__cause__ = errors.LinkLost("cut")
    assert exit_code(error) == NO_CONNECTION


def test_codes_match_the_reference() -> None:
    assert (FAILED, WRONG_USE, NO_CONNECTION) == (1, 2, 3)
