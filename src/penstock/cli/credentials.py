"""Who asks: credentials from the command line, a file or the environment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from ..errors import LocalError
from .arguments import read_bytes

if TYPE_CHECKING:
    from .. import Bearer, Simple

__all__ = ["credentials"]

FROM_ENVIRONMENT: Final = "env:"
USAGE: Final = (
    "write simple:USER:PASSWORD or bearer:TOKEN, @FILE or env:NAME for all of it,"
    " or bearer:@FILE or bearer:env:NAME for the secret alone"
)


def credentials(text: str) -> Simple | Bearer:
    """Return what --auth or --setup-auth says. What is secret is in no error.

    Raises:
        LocalError: It says nothing that we know, or a file or variable is not there.

    """
    from .. import Bearer, Simple

    # What comes from a file or a variable is taken as it stands.
    whole = _elsewhere(text)
    scheme, _, rest = (text if whole is None else whole).partition(":")
    if scheme == "bearer" and rest:
        return Bearer(_secret(rest, whole is None))
    user, colon, password = rest.partition(":")
    if scheme == "simple" and colon:
        return Simple(user, _secret(password, whole is None))
    raise LocalError(f"these are no credentials; {USAGE}")


def _secret(text: str, may_be_elsewhere: bool) -> str:
    found = _elsewhere(text) if may_be_elsewhere else None
    return text if found is None else found


def _elsewhere(text: str) -> str | None:
    """Return what a file or a variable holds, without the line's end; None if `text` names neither."""
    if text.startswith("@"):
        octets = read_bytes(text)
        try:
            return octets.decode().rstrip("\r\n")
        except UnicodeDecodeError:
            pass
        raise LocalError(f"the credentials in {text[1:]!r} are no UTF-8")
    if text.startswith(FROM_ENVIRONMENT):
        name = text.removeprefix(FROM_ENVIRONMENT)
        if name not in os.environ:
            raise LocalError(f"the environment has no variable {name!r}")
        return os.environ[name]
    return None
