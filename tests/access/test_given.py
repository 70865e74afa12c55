from __future__ import annotations

import pytest

from penstock.access.given import given_setting


def test_values_have_the_type_of_the_setting() -> None:
    assert given_setting("keepalive-interval", "5") == ("keepalive_interval", 5)
    assert given_setting("lenient", "true") == ("lenient", True)
    assert given_setting("element_sizes", "ticks:8") == ("element_sizes", (("ticks", 8),))


@pytest.mark.parametrize(
    ("name", "text", "part"),
    [("credits", "1", "did you mean 'credit'"), ("zzz", "1", "settings.md"), ("credit", "1.5", "an integer")],
)
def test_mistakes_are_explained(name: str, text: str, part: str) -> None:
    with pytest.raises(ValueError, match=part):
        given_setting(name, text)
