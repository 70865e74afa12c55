from __future__ import annotations

from weirpool.schema.layout import call


def test_long_calls_are_split_as_by_formatters() -> None:
    assert call("f", ["a", "b"], ":", "") == ["f(a, b):"]
    assert call("f", ["a" * 100, "b" * 100], ":", "") == ["f(", f"    {'a' * 100},", f"    {'b' * 100},", "):"]
