"""Credentials from the command line, a file or the environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..access.references import referenced
from ..errors import LocalError

if TYPE_CHECKING:
    from .. import Bearer, Simple

__all__ = ["check_form", "credentials"]

USAGE: Final = (
    "use simple:USER:PASSWORD or bearer:TOKEN, @FILE or env:NAME for all of it,"
    " or bearer:@FILE or bearer:env:NAME for only the secret"
)


def credentials(text: str) -> Simple | Bearer:
    """Return the credentials that --auth or --setup-auth describes. No error contains a secret."""
    from .. import Bearer, Simple

    # The content of a file or variable is not resolved again.
    whole = referenced(text)
    scheme, _, rest = (text if whole is None else whole).partition(":")
    if scheme == "bearer" and rest:
        return Bearer(_secret(rest, whole is None))
    user, colon, password = rest.partition(":")
    if scheme == "simple" and colon:
        return Simple(user, _secret(password, whole is None))
    raise LocalError(f"invalid credentials; {USAGE}")


def check_form(text: str) -> None:
    """Raise LocalError if :func:`credentials` cannot read this, whatever a file or a variable contains."""
    scheme, _, rest = text.partition(":")
    known = text.startswith(("@", "env:")) or (scheme == "bearer" and rest) or (scheme == "simple" and ":" in rest)
    if not known:
        raise LocalError(f"invalid credentials; {USAGE}")


def _secret(text: str, may_refer: bool) -> str:
    found = referenced(text) if may_refer else None
    return text if found is None else found
