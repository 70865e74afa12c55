from __future__ import annotations

import inspect

import pytest

from penstock.session import Acceptor, Session
from tests.builds import Build


def promised(protocol: type) -> dict[str, list[str]]:
    """Return what the waist offers, each with the names of its parameters."""
    return {
        name: list(inspect.signature(member).parameters)
        for name, member in vars(protocol).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }


@pytest.mark.parametrize(
    ("module", "name", "protocol"),
    [
        ("penstock.rsocket.session", "RSocketSession", Session),
        ("penstock.rsocket.accept", "RSocketAcceptor", Acceptor),
    ],
)
def test_every_family_keeps_the_waist(build: Build, module: str, name: str, protocol: type) -> None:
    family = getattr(build.module(module), name)
    for verb, parameters in promised(protocol).items():
        assert list(inspect.signature(getattr(family, verb)).parameters) == parameters, verb


def test_every_verb_says_what_it_does() -> None:
    for protocol in (Session, Acceptor):
        for verb in promised(protocol):
            assert inspect.getdoc(getattr(protocol, verb)), verb
