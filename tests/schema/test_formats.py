from __future__ import annotations

import sys

import pytest

from weirpool.schema.formats import FORMATS, JSON, KNOWN, MSGPACK, Format, format_of


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


def size_of(value: object) -> int:
    """Return the memory of a decoded value, as the allocator rounds it."""
    header = 16 if isinstance(value, list | dict) else 0
    size = (sys.getsizeof(value) + header + 15) // 16 * 16
    if isinstance(value, list):
        size += sum(map(size_of, value))
    elif isinstance(value, dict):
        size += sum(size_of(key) + size_of(each) for key, each in value.items())
    return size


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "value",
    [
        [[] for _ in range(1_000)],
        [{} for _ in range(1_000)],
        [[0] for _ in range(1_000)],
        [{f"k{number}": number} for number in range(1_000)],
        {f"key {number}": "v" * 20 for number in range(1_000)},
        [number / 7 for number in range(1_000)],
        [f"{number}" for number in range(1_000)],
        "x" * 10_000,
        "x" * 10_000 + "\U0001f600",
    ],
    ids=["lists", "dicts", "filled lists", "filled dicts", "large dict", "floats", "strings", "text", "wide text"],
)
def test_memory_of_decoded_data_is_bounded(form: Format, value: object) -> None:
    # THREATS 84
    data = form.encode(value)
    actual = size_of(form.decoder().decode(data))
    assert 0.9 * actual <= form.memory(data) <= 5 * actual
