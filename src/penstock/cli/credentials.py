"""Credentials from the command line, a file or the environment."""

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
    "use simple:USER:PASSWORD or bearer:TOKEN, @FILE or env:NAME for all of it,"
    " or bearer:@FILE or bearer:env:NAME for only the secret"
)


def credentials(text: str) -> Simple | Bearer:
    """Return the credentials that --auth or --setup-auth describes. No error contains a secret."""
    from .. import Bearer, Simple

    # The content of a file or variable is not resolved again.
    whole = _referenced(text)
    scheme, _, rest = (text if whole is None else whole).partition(":")
    if scheme == "bearer" and rest:
        return Bearer(_secret(rest, whole is None))
    user, colon, password = rest.partition(":")
    if scheme == "simple" and colon:
        return Simple(user, _secret(password, whole is None))
    raise LocalError(f"invalid credentials; {USAGE}")


def _secret(text: str, may_refer: bool) -> str:
    found = _referenced(text) if may_refer else None
    return text if found is None else found


def _referenced(text: str) -> str | None:
    """Return the content of a file, without its final line break, or of a variable; None if `text` names neither."""
    if text.startswith("@"):
        data = read_bytes(text)
        try:
            return data.decode().rstrip("\r\n")
        except UnicodeDecodeError:
            # The error would contain the secret.
            pass
        raise LocalError(f"the credentials in {text[1:]!r} are not valid UTF-8")
    if text.startswith(FROM_ENVIRONMENT):
        name = text.removeprefix(FROM_ENVIRONMENT)
        if name not in os.environ:
            raise LocalError(f"the environment variable {name!r} is not set")
        return os.environ[name]
    return None
