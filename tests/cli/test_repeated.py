"""What commands that are printed repeat of the options of a running one."""

from __future__ import annotations

from typing import Any

import pytest

from weirpool.cli.repeated import without_secret


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("auth", "bearer:secret", "(hidden)"),
        ("auth", "simple:me:secret", "(hidden)"),
        ("auth", "bearer:env:TOKEN", "bearer:env:TOKEN"),
        ("setup_auth", "@/run/token", "@/run/token"),
        ("auth", "simple:me:@/run/password", "simple:me:@/run/password"),
        ("header", ["Authorization: Bearer secret", "secret"], ["Authorization: (hidden)", "(hidden)"]),
        ("setup", "secret", "(hidden)"),
        ("set", ["credit=5"], ["credit=5"]),
        ("insecure", True, True),
    ],
)
def test_only_the_place_of_a_secret_is_shown(name: str, value: Any, shown: Any) -> None:
    assert without_secret(name, value) == shown
