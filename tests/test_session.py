from __future__ import annotations

import inspect

import pytest

from tests.builds import Build
from weirpool.protocols import PROTOCOLS
from weirpool.session import Detector, Session
from weirpool.settings import Settings


def promised(protocol: type) -> dict[str, list[str]]:
    """Return the methods of the waist, with the names of their parameters."""
    return {
        name: list(inspect.signature(member).parameters)
        for name, member in vars(protocol).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_protocol_keeps_the_waist(build: Build, protocol: str) -> None:
    protocols = build.module("weirpool.protocols")
    session = protocols.client_session(protocol, Settings(), random=bytes(16))
    for found, waist in ((session, Session), (protocols.detectors(protocol, Settings())(), Detector)):
        for verb, parameters in promised(waist).items():
            # Sessions use methods of their parts, so the bound methods of the instance are checked.
            assert list(inspect.signature(getattr(found, verb)).parameters) == parameters[1:], verb


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_session_implements_the_waist(build: Build, protocol: str) -> None:
    session = build.module("weirpool.protocols").client_session(protocol, Settings(), random=bytes(16))
    for name in (*filter(lambda name: not name.startswith("_"), vars(Session)), *Session.__annotations__):
        assert hasattr(session, name), name
    assert (session.linked_at, session.excused, session.durable) == (None, False, None)


@pytest.mark.parametrize("protocol", [protocol for protocol in PROTOCOLS if protocol != "river"])
def test_sessions_without_rehandshake_say_so(build: Build, protocol: str) -> None:
    session = build.module("weirpool.protocols").client_session(protocol, Settings())
    refusal = build.module("weirpool.errors").UnsupportedKind
    with pytest.raises(refusal, match=f"{protocol}.* does not support rehandshakes"):
        session.rehandshake(0.0)


def test_every_verb_has_a_docstring() -> None:
    for protocol in (Session, Detector):
        for verb in promised(protocol):
            assert inspect.getdoc(getattr(protocol, verb)), verb
