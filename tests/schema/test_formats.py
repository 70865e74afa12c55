from __future__ import annotations

import pytest

from penstock.schema.formats import JSON, KNOWN, MSGPACK, RIVER_JSON, RIVER_MSGPACK, Format, format_of


@pytest.mark.parametrize(
    ("mime", "form"),
    [
        ("application/json", JSON),
        ("Application/JSON; charset=utf-8", JSON),
        ("application/vnd.shop.order+json", JSON),
        ("application/msgpack", MSGPACK),
        ("application/x-msgpack", MSGPACK),
        ("application/vnd.msgpack", MSGPACK),
        ("application/vnd.river+json", RIVER_JSON),
        ("application/vnd.river+msgpack", RIVER_MSGPACK),
        ("application/octet-stream", None),
        ("text/plain", None),
        ("json", None),
        ("", None),
    ],
)
def test_mime_types_that_work(mime: str, form: Format | None) -> None:
    assert format_of(mime) is form


def test_both_formats_round_trip() -> None:
    for form in (JSON, MSGPACK):
        assert form.decoder(list[int]).decode(form.encode([1, 2])) == [1, 2]
        assert form.name in KNOWN
