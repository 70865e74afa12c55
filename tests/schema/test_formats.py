from __future__ import annotations

import pytest

from penstock.schema.formats import JSON, KNOWN, MSGPACK, Format, format_of


@pytest.mark.parametrize(
    ("mime", "form"),
    [
        ("application/json", JSON),
        ("Application/JSON; charset=utf-8", JSON),
        ("application/vnd.shop.order+json", JSON),
        ("application/msgpack", MSGPACK),
        ("application/x-msgpack", MSGPACK),
        ("application/vnd.msgpack", MSGPACK),
        ("application/octet-stream", None),
        ("text/plain", None),
        ("json", None),
        ("", None),
    ],
)
def test_mime_types_that_work(mime: str, form: Format | None) -> None:
    assert format_of(mime) is form


@pytest.mark.parametrize(("mime", "name"), [("json", "River's json"), ("msgpack", "River's msgpack")])
def test_protocols_bring_encodings_of_their_own(mime: str, name: str) -> None:
    form = format_of(f"application/vnd.river+{mime}; charset=utf-8")
    assert form is not None
    assert form is format_of(f"application/vnd.river+{mime}")
    assert form.name == name
    assert form.decoder(list[bytes]).decode(form.encode([b"\0"])) == [b"\0"]


def test_both_formats_round_trip() -> None:
    for form in (JSON, MSGPACK):
        assert form.decoder(list[int]).decode(form.encode([1, 2])) == [1, 2]
        assert form.name in KNOWN
