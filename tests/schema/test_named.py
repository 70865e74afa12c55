from __future__ import annotations

import json

import msgspec
import pytest

from tests.schema.encodings import ALL
from weirpool import ApplicationError, LocalError, TypedError
from weirpool.schema.formats import JSON, Format
from weirpool.schema.named import RESERVED, named_error


class Extras(msgspec.Struct):
    symbol: str


class Unknown(TypedError, code="UNKNOWN"):
    """There is no such symbol."""

    extras: Extras


class Closed(TypedError, code="CLOSED"):
    pass


CLASSES: dict[str, type[TypedError]] = {"UNKNOWN": Unknown, "CLOSED": Closed}


def test_data_is_the_error_as_river_has_it() -> None:
    error = Unknown("nobody knows it", Extras("X"))
    assert (error.code, error.message, error.extras) == ("UNKNOWN", "nobody knows it", Extras("X"))
    body = {"code": "UNKNOWN", "message": "nobody knows it", "extras": {"symbol": "X"}}
    assert json.loads(error.data) == body
    assert json.loads(Closed().data) == {"code": "CLOSED", "message": ""}


@pytest.mark.parametrize("code", ["", *RESERVED])
def test_codes_of_the_protocol_are_not_for_applications(code: str) -> None:
    with pytest.raises(LocalError, match="choose a word"):
        type("Wrong", (TypedError,), {}, code=code)


def test_the_base_is_not_raised() -> None:
    with pytest.raises(LocalError, match="subclassed"):
        TypedError("x")


def test_an_error_is_found_by_its_name() -> None:
    travelled = ApplicationError(0x201, "", Unknown("m", Extras("X")).data, b"meta")
    found = named_error(travelled, CLASSES, JSON)
    assert isinstance(found, Unknown)
    assert (found.message, found.extras, found.data, found.metadata) == ("m", Extras("X"), travelled.data, b"meta")
    packed = msgspec.msgpack.encode({"code": "CLOSED", "message": "late"})
    assert isinstance(named_error(ApplicationError(0x201, "late", packed), CLASSES, JSON), Closed)


@pytest.mark.parametrize("form", ALL)
def test_data_is_the_extras_when_codes_are_strings(form: Format) -> None:
    travelled = ApplicationError("UNKNOWN", "m", form.encode(Extras("X")))
    found = named_error(travelled, CLASSES, form)
    assert isinstance(found, Unknown) and (found.message, found.extras) == ("m", Extras("X"))
    assert isinstance(named_error(ApplicationError("CLOSED", "late"), CLASSES, form), Closed)
    for other in (ApplicationError("OTHER", "m"), ApplicationError("UNKNOWN", "m", form.encode([]))):
        assert named_error(other, CLASSES, form) is other


@pytest.mark.parametrize(
    "data",
    [
        b"", b"boom", b"{", b'{"code":1}', b'{"code":"OTHER","message":""}', b"[]",
        b'{"code":"UNKNOWN","message":"","extras":{"symbol":1}}',
    ],
)  # fmt: skip
def test_other_errors_are_returned_unchanged(data: bytes) -> None:
    error = ApplicationError(0x301, "", data)
    assert named_error(error, CLASSES, JSON) is error


def test_unresolved_extras_annotation_is_an_error() -> None:
    class Hidden(TypedError, code="HIDDEN"):
        extras: Nowhere  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(LocalError, match=r"Hidden\.extras"):
        Hidden.extras_type()
    assert Unknown.extras_type() is Extras
    assert Closed.extras_type() is None


@pytest.mark.parametrize("code", ["", "CANCEL", "A\nB", "\x1b[2J", "\u202eA", "A" * 257])
def test_a_code_is_a_line(code: str) -> None:
    with pytest.raises(LocalError, match="choose a word"):
        type("Wrong", (TypedError,), {}, code=code)
