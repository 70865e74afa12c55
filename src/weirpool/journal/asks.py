"""Asks the owner of a group to store what readers record on its machine, so that a successor knows of it.

The cursors in a log's folder are lost with the machine. The owner of the log's group puts them into its store, but not
before it writes its next bundle. A reader that has advanced need not wait for that: a successor keeps more rows then. A
new reader, one that goes back, and an operator who drops one wait, because the successor could remove rows that are
needed, or give the name to another query. They ask by a file, and the owner removes that when the store has the change:

::

    _asks/SOURCE                   readers of this log have advanced
    _asks/SOURCE~READER~ASK        somebody waits; READER is a digest of the name, and ASK is random

The folder exists in the journals of collectors that have owned a group. On a machine without the owner nobody answers.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from uuid import uuid4

import xxhash

from ..errors import JournalError
from .disk import disk_errors, make_folder, open_private
from .layout import ASKS, is_source, source_of

__all__ = ["POLL", "Ask", "advanced", "ask_of", "asked", "confirm", "prepare", "recording"]

PATIENCE: Final = 10.0
"""Seconds to wait for an answer: two bundles, and a store that is slow."""
POLL: Final = 0.05
_SEPARATOR: Final = "~"
_SEALER: Final = ""
"""In place of a reader's name: the sealer wants to know that the owner is here, and knows the readers."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A change that is recorded on this machine, and that the group's store may lack."""

    text: str
    """What was recorded, for people."""
    files: tuple[Path, ...]
    check: Callable[[], None] = lambda: None
    """Checks that the change is still there: another collector may have owned the group meanwhile."""
    deadline: float = field(default_factory=lambda: time.monotonic() + PATIENCE)

    def is_answered(self) -> bool:
        """Return True if the store has the change.

        Raises:
            JournalError: There is no answer in time, or the change was lost. Record it again.

        """
        if not any(map(os.path.exists, self.files)):
            self.check()
            return True
        if time.monotonic() > self.deadline:
            raise JournalError(
                f"{self.text}: the owner of this log's group has not stored that within {PATIENCE:g} s; it runs on "
                "another machine, or its store does not answer; repeat this where the owner runs"
            )
        return False

    def wait(self) -> None:
        """Wait for the answer; errors are those of `is_answered`."""
        while not self.is_answered():
            time.sleep(POLL)


@contextmanager
def recording(folder: Path, reader: str, *, binding: bool) -> Iterator[None]:
    """Tell the owner that what a log's folder says of a reader changes inside the block.

    A change is binding if a successor must not overlook it. `ask_of` returns what to wait for then.
    """
    if not (folder.parent / ASKS).is_dir():
        yield
        return
    if binding:
        # Before the change, too: whoever repeats it after a crash waits as well.
        _ask(folder, reader)
    yield
    if binding:
        _ask(folder, reader)
    else:
        advanced(folder)


def advanced(folder: Path) -> None:
    """Tell the owner that the readers of a log have changed, and do not wait."""
    # Without it, the store has the former positions for longer.
    with suppress(OSError):
        os.close(open_private(folder.parent / ASKS / str(source_of(folder.name)), os.O_WRONLY))


def ask_of(folder: Path, reader: str, text: str, check: Callable[[], None] = lambda: None) -> Ask | None:
    """Return what to wait for before a reader is told that its change is recorded; None if nothing is open."""
    prefix = _prefix(folder, reader)
    files = tuple(folder.parent / ASKS / name for name in _names(folder.parent) if name.startswith(prefix))
    return Ask(text, files, check) if files else None


def confirm(folder: Path) -> None:
    """Wait until the owner of a log's group has stored the readers of the log; return at once without a group.

    After that the cursors in the folder are those that the group has, so rows may be removed that none of them needs.

    Raises:
        JournalError: The owner does not answer: this machine may know other readers than the group.

    """
    if (folder.parent / ASKS).is_dir():
        _ask(folder, _SEALER)
        ask = ask_of(folder, _SEALER, f"{folder}: no rows are removed, because this machine does not know all readers")
        if ask is not None:
            ask.wait()


def prepare(journal: Path) -> None:
    """Begin to answer for a journal's logs; until `asked` is called, those who record something wait."""
    with disk_errors(journal, "be created"):
        make_folder(journal / ASKS)


def asked(journal: Path) -> dict[str, list[Path]]:
    """Return the sources whose readers have changed, with the files to remove when the store has what they are now."""
    found: dict[str, list[Path]] = {}
    for name in _names(journal):
        source, separator, _ = name.partition(_SEPARATOR)
        if not is_source(source):
            continue
        files = found.setdefault(source, [])
        if separator:
            files.append(journal / ASKS / name)
        else:
            # Before the cursors are read: what changes after that is told again.
            with suppress(OSError):
                (journal / ASKS / name).unlink()
    return found


def _ask(folder: Path, reader: str) -> None:
    path = folder.parent / ASKS / f"{_prefix(folder, reader)}{uuid4().hex}"
    with disk_errors(path, "be written"):
        os.close(open_private(path, os.O_WRONLY))


def _prefix(folder: Path, reader: str) -> str:
    # A name may be too long for a file together with that of the source.
    return f"{source_of(folder.name)}{_SEPARATOR}{xxhash.xxh3_64_hexdigest(reader.encode())}{_SEPARATOR}"


def _names(journal: Path) -> list[str]:
    with disk_errors(journal / ASKS, "be listed"), suppress(FileNotFoundError):
        return os.listdir(journal / ASKS)
    return []
