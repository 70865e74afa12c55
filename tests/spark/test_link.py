from __future__ import annotations

import pytest

from weirpool import (
    ApplicationError,
    Canceled,
    ConnectError,
    LinkLost,
    LocalError,
    PeerClosed,
    ProtocolError,
    Rejected,
    SetupRejected,
    Undelivered,
)
from weirpool.spark.link import is_temporary


def caused(error: ApplicationError, cause: Exception) -> ApplicationError:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        ConnectError("refused"),
        LinkLost("reset"),
        PeerClosed("bye"),
        Rejected(message="busy"),
        SetupRejected.full("1 connection"),
        caused(ApplicationError(), LinkLost("reset")),
    ],
)
def test_network_and_busy_receivers_are_temporary(error: Exception) -> None:
    assert is_temporary(error)


@pytest.mark.parametrize(
    "error",
    [
        ApplicationError(0x301, "no"),
        Canceled(),
        LocalError("no"),
        ProtocolError("junk"),
        SetupRejected("who are you?"),
        Undelivered("stalled"),
        caused(ApplicationError(), ProtocolError("junk")),
    ],
)
def test_what_does_not_change_by_itself_is_not(error: Exception) -> None:
    assert not is_temporary(error)
