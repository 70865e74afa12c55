from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from weirpool import Settings
from weirpool.access.given import NOT_GIVEN, given_setting

TEXTS = {bool: "true", int: "12", float: "500ms", str: "odd", tuple: "a,b"}
VALUES = {bool: True, int: 12, float: 0.5, str: "odd", tuple: ("a", "b")}
NAMES = [field.name for field in fields(Settings) if field.name not in NOT_GIVEN]


@pytest.mark.parametrize("name", NAMES)
def test_each_setting_is_given_as_text_or_as_a_value(name: str) -> None:
    kind = type(getattr(Settings(), name))
    text, value, as_list = TEXTS[kind], VALUES[kind], ["a", "b"]
    if name == "element_sizes":
        text, value, as_list = "a:1,b:2k", (("a", 1), ("b", 2048)), [["a", 1], ["b", "2k"]]  # type: ignore[list-item]
    assert given_setting(name, text) == (name, value)
    assert given_setting(name.replace("_", "-"), as_list if kind is tuple else value) == (name, value)


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("max_frame_bytes", "1MiB", 2**20),
        ("resume_bytes", "0", 0),
        ("keepalive_interval", 5, 5.0),
        ("keepalive_interval", "1m", 60.0),
        ("lenient", "false", False),
        ("origins", "", ()),
    ],
)
def test_text_has_the_form_of_its_setting(name: str, given: object, value: object) -> None:
    assert given_setting(name, given) == (name, value)


@pytest.mark.parametrize(
    ("name", "given", "part"),
    [
        ("credits", "1", "did you mean 'credit'"),
        ("zzz", "1", "settings.md"),
        ("headers", "a:b", "not a setting that can be given here"),
        ("credit", "1.5", "credit is '1.5'; it must be a whole number"),
        ("credit", True, "a whole number"),
        ("credit", "1KiB", "a whole number"),
        ("lenient", "yes", "true or false"),
        ("lenient", 1, "true or false"),
        ("software", 1, "a text"),
        ("origins", 1, "a list"),
        ("resume_timeout", "soon", "a duration"),
        ("max_frame_bytes", "1.5", "a size"),
        ("element_sizes", "8", "must be ROUTE:BYTES"),
        ("element_sizes", "a:1,b:c", "'b:c' must be ROUTE:BYTES"),
        ("element_sizes", [["a"]], "must be ROUTE:BYTES"),
    ],
)
def test_mistakes_are_explained(name: str, given: Any, part: str) -> None:
    with pytest.raises(ValueError, match=part):
        given_setting(name, given)


def test_fields_that_a_caller_sets_itself_are_refused() -> None:
    with pytest.raises(ValueError, match="resume is not a setting that can be given here"):
        given_setting("resume", "true", without=("resume",))
