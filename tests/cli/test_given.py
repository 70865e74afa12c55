from __future__ import annotations

import pytest

from weirpool.cli.given import given_settings
from weirpool.errors import LocalError


def test_values_have_the_type_of_the_setting() -> None:
    pairs = ["credit=4096", "keepalive-interval=5", "lenient=true", "client_ids=even", "close_grace=0.5"]
    assert given_settings(pairs) == {
        "credit": 4096,
        "keepalive_interval": 5,
        "lenient": True,
        "client_ids": "even",
        "close_grace": 0.5,
    }


def test_lists_have_commas() -> None:
    assert given_settings(["element-sizes=ticks:8,a:b:16", "extensions=metadata"]) == {
        "element_sizes": (("ticks", 8), ("a:b", 16)),
        "extensions": ("metadata",),
    }
    assert given_settings(["extensions="]) == {"extensions": ()}
    assert given_settings(["trusted-proxies=10.0.0.0/8,unix"]) == {"trusted_proxies": ("10.0.0.0/8", "unix")}


@pytest.mark.parametrize(
    ("pair", "part"),
    [
        ("credit", "NAME=VALUE"),
        ("credits=1", "did you mean 'credit'"),
        ("lease=true", "not a setting"),
        ("headers=x", "not a setting"),
        ("credit=many", "a whole number"),
        ("credit=1.5", "a whole number"),
        ("credit=true", "a whole number"),
        ("lenient=1", "true or false"),
        ("close_grace=soon", "a number"),
        ("element_sizes=ticks", "'ticks' must be ROUTE:BYTES"),
        ("element_sizes=a:8,b:many", "'b:many' must be ROUTE:BYTES"),
        ("element_size=a:8", "did you mean 'element_sizes'"),
    ],
)
def test_invalid_setting_is_an_error(pair: str, part: str) -> None:
    with pytest.raises(LocalError, match=part):
        given_settings([pair])
