"""Secrets that are named rather than written down: the content of a file or of an environment variable."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from ..errors import LocalError

__all__ = ["referenced", "resolved"]

FROM_ENVIRONMENT: Final = "env:"
FROM_FILE: Final = "@"


def referenced(text: str) -> str | None:
    """Return the content of a file or a variable; None if `text` is neither `@FILE` nor `env:NAME`.

    The line break at the end of a file is removed.

    Raises:
        LocalError: It cannot be read. The message does not contain the secret.

    """
    if text.startswith(FROM_FILE):
        return _content(text.removeprefix(FROM_FILE))
    if text.startswith(FROM_ENVIRONMENT):
        name = text.removeprefix(FROM_ENVIRONMENT)
        if name not in os.environ:
            raise LocalError(f"the environment variable {name!r} is not set")
        return os.environ[name]
    return None


def resolved(text: str) -> str:
    """Return what `text` refers to, or `text` itself; see :func:`referenced`."""
    found = referenced(text)
    return text if found is None else found


def _content(path: str) -> str:
    try:
        return Path(path).read_text("utf-8").rstrip("\r\n")
    except OSError as error:
        raise LocalError(f"cannot read {path!r}: {error.strerror}") from error
    except UnicodeDecodeError:
        # The error would contain the secret.
        pass
    raise LocalError(f"the credentials in {path!r} are not valid UTF-8")
