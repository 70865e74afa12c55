from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from weirpool import Bearer, Custom, LocalError, Metadata, Payload, SetupRejected, Simple
from weirpool.access.admission import require


def setup(metadata: bytes | None) -> Any:
    """Return a client's set-up, as far as it is looked at."""
    return SimpleNamespace(payload=Payload(b"", metadata))


def shown(auth: Bearer | Simple | Custom) -> Any:
    return setup(Metadata(auth=auth).encode())


@pytest.mark.parametrize(
    "credentials", [Bearer("secret"), Bearer("geheimnis-ü"), Simple("ada", "x"), Simple("ada", "")]
)
def test_the_same_credentials_are_admitted(credentials: Bearer | Simple) -> None:
    accept = require(credentials)
    accept(shown(credentials))
    accept(setup(Metadata(route="a", auth=credentials).encode()))
    with pytest.raises(SetupRejected):
        accept(setup(Metadata(route="a").encode()))


@pytest.mark.parametrize(
    "client",
    [
        setup(None),
        setup(b""),
        setup(b"junk"),
        setup(b"\xfc\x00\x00\x09\x81ab"),
        setup(Metadata(route="a").encode()),
        shown(Bearer("é")),
        shown(Bearer("")),
        shown(Bearer("secret ")),
        shown(Simple("secret", "")),
        shown(Simple("secret", "secret")),
        shown(Custom("bearer+", b"secret")),
    ],
)
def test_others_are_rejected_quietly(client: Any) -> None:
    for credentials in (Bearer("secret"), Simple("ada", "x")):
        with pytest.raises(SetupRejected, match="credentials in the set-up are missing or wrong") as caught:
            require(credentials)(client)
        assert not caught.value.temporary


def test_nobody_shows_an_empty_token() -> None:
    with pytest.raises(SetupRejected):
        require(Bearer(""))(shown(Bearer("")))


def test_credentials_that_cannot_be_shown_are_a_mistake() -> None:
    with pytest.raises(LocalError):
        require(Bearer("\ud800"))
