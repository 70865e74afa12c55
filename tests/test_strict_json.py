from __future__ import annotations

import pytest

from weirpool.strict_json import RepeatedName, strict_json


def test_json_is_read_as_usual() -> None:
    assert strict_json('{"a": [1, 2.5, null], "b": {"a": "x"}}') == {"a": [1, 2.5, None], "b": {"a": "x"}}
    assert strict_json(b'"\xc3\xa9"') == "é"


@pytest.mark.parametrize("text", ['{"s": 5, "s": 6}', '[{"t": 1, "s": {"s": 5, "s": 5}}]', '{"s": 1, "\\u0073": 2}'])
def test_a_repeated_name_is_refused(text: str) -> None:
    with pytest.raises(RepeatedName, match="'s' is there twice"):
        strict_json(text)


@pytest.mark.parametrize("text", ["", "{", "NaN", '{"a": -Infinity}', b"\xff", "[" * 200_000, "1e999", "[-1e400]"])
def test_what_is_not_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(ValueError):
        strict_json(text)
