"""Where the command line is, and where it keeps what belongs to its user."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from ..texts import shell_word

__all__ = ["command", "configuration"]


def command() -> str:
    """Return the first word of commands to copy: the path of the script if the shell does not find ``weirpool``."""
    script = Path(sys.argv[0])
    return shell_word(sys.argv[0]) if script.stem == "weirpool" and not shutil.which("weirpool") else "weirpool"


def configuration(name: str) -> Path:
    """Return the path of a file in the user's configuration, which may not exist."""
    # XDG Base Directory Specification: paths that are not absolute are ignored.
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    return Path(folder if os.path.isabs(folder) else Path.home() / ".config") / "weirpool" / name
