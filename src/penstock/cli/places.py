"""Where the command line keeps what belongs to its user."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["configuration"]


def configuration(name: str) -> Path:
    """Return the path of a file in the user's configuration, which may not exist."""
    # XDG Base Directory Specification: paths that are not absolute are ignored.
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    return Path(folder if os.path.isabs(folder) else Path.home() / ".config") / "penstock" / name
