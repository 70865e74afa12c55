"""How a client of a served journal finds it and proves who it is: the URL, and credentials from its environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec

from ..access.listening import ENCRYPTED
from ..access.target import Target
from ..errors import LocalError
from ..protocols import EXAMPLE_URL, spec_of
from ..urls import parse_url

__all__ = ["JOURNAL", "Selection", "alternatives", "has_secret", "require_bytes", "target"]

TOKEN: Final = "WEIRPOOL_JOURNAL_TOKEN"
TOKEN_FILE: Final = "WEIRPOOL_JOURNAL_TOKEN_FILE"
USER: Final = "WEIRPOOL_JOURNAL_USER"
PASSWORD: Final = "WEIRPOOL_JOURNAL_PASSWORD"
CERT: Final = "WEIRPOOL_JOURNAL_CERT"
KEY: Final = "WEIRPOOL_JOURNAL_KEY"
CA: Final = "WEIRPOOL_JOURNAL_CA"
JOURNAL: Final = "journal"
"""The option of a URL that names one of several served journals."""


class Selection(msgspec.Struct, frozen=True):
    """The data of a client's set-up: which journal the connection is for."""

    journal: str


def target(url: str, settings: Mapping[str, Any]) -> Target:
    """Return the collector at a URL, with the credentials and certificates that the environment names.

    It is made for each connection, which reads the files, so that a token in a file may be renewed.

    Raises:
        LocalError: The credentials cannot be used with this URL.

    """
    place = parse_url(url)
    options = dict(place.options)
    name = options.pop(JOURNAL, None)
    encrypted = place.transport in ENCRYPTED
    try:
        return Target(
            url=str(replace(place, options=options)),
            settings=settings,
            setup=None if name is None else msgspec.json.encode(Selection(name)).decode(),
            cafile=os.environ.get(CA) if encrypted else None,
            cert=os.environ.get(CERT) if encrypted else None,
            key=os.environ.get(KEY) if encrypted and CERT in os.environ else None,
            **_credentials(),
        )
    except LocalError as error:
        raise LocalError(f"{url}: {error}; check the variables WEIRPOOL_JOURNAL_…") from None


def alternatives(url: str) -> list[str]:
    """Return the URLs of collectors that stand in for each other: those between "|"."""
    return [place.strip() for place in url.split("|")]


def require_bytes(url: str) -> None:
    """Check that the items of a URL's protocol are bytes, as rows are; `LocalError` otherwise."""
    protocol = parse_url(url).protocol
    if spec_of(protocol).data_mime:
        raise LocalError(
            f"{url}: {protocol} carries values, and rows are bytes; use another protocol, as in {EXAMPLE_URL}"
        )


def has_secret() -> bool:
    """Return True if the environment has a secret that is sent to collectors."""
    return bool(_credentials())


def _credentials() -> dict[str, Any]:
    """Return the fields of `Target`: a token, or a user and a password, if the environment has them."""
    if TOKEN in os.environ:
        return {"token": f"env:{TOKEN}"}
    if TOKEN_FILE in os.environ:
        return {"token": f"@{os.environ[TOKEN_FILE]}"}
    if USER in os.environ:
        return {"user": os.environ[USER], "password": f"env:{PASSWORD}" if PASSWORD in os.environ else ""}
    return {}
