from __future__ import annotations

from dataclasses import dataclass, field
from inspect import Parameter, signature

import pytest

from weirpool.cli.connect_options import SessionOptions
from weirpool.cli.groups import grouped, words_of


@dataclass(frozen=True, kw_only=True)
class Base:
    many: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Derived(Base):
    needed: int
    other: str = "default"


def test_fields_become_parameters_and_come_back_as_a_group() -> None:
    called: list[object] = []

    @grouped
    def verb(url: str, group: Derived, last: int = 3) -> None:
        """Do it."""
        called.append((url, group, last))

    parameters = signature(verb).parameters
    assert list(parameters) == ["url", "many", "needed", "other", "last"]
    assert parameters["needed"].default is Parameter.empty
    assert (parameters["many"].default, parameters["other"].default, parameters["last"].default) == ([], "default", 3)
    assert parameters["needed"].annotation is int
    assert verb.__doc__ == "Do it."
    verb(url="there", many=["a"], needed=1, other="o", last=4)
    assert called == [("there", Derived(many=["a"], needed=1, other="o"), 4)]


def test_missing_field_is_an_error() -> None:
    @grouped
    def verb(group: Derived) -> None:
        raise AssertionError

    with pytest.raises(KeyError):
        verb(needed=1)


def test_options_are_written_as_words_again() -> None:
    group = SessionOptions(data_mime="text/plain", lease=True, header=["A: b", "C: d"], set=["credit=5"])
    assert words_of(group) == [
        "--data-mime", "text/plain", "--lease", "--header", "A: b", "--header", "C: d", "--set", "credit=5",
    ]  # fmt: skip
    assert words_of(group, skip=["header", "set", "lease"]) == ["--data-mime", "text/plain"]
    assert words_of(SessionOptions()) == []
