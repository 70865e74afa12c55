from __future__ import annotations

import pytest

from penstock.bridging.counters import Counters
from penstock.bridging.translation import Side, Translation
from penstock.connection import Connection
from penstock.errors import (
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
from penstock.payload import Payload


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


def test_other_errors_are_not_hidden() -> None:
    mistake = ZeroDivisionError()
    assert translation("rsocket", "river").error(mistake) is mistake


def test_metadata_of_items_needs_a_place() -> None:
    counters, item = Counters(), Payload(b"x", b"m")
    assert translation("rsocket", "reactivesocket-0.2", counters).received(item) is item
    assert counters.metadata_dropped == 0
    assert translation("rsocket", "river", counters).sent(item) == Payload(b"x")
    assert counters.metadata_dropped == 1
