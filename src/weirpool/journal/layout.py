"""The layout of a log: the names in its folder, and the sizes of its segments.

::

    source=NAME/
        00000000000000000000.arrows     a segment, named by the position of its first row
        00000000000000524288.arrows
        _log.json                       the log's UUID, and the request that it collects
        _secret                         secrets of the collector's session; never in a segment
        _gaps                           gaps whose segments were trimmed
        _trimmed                        the position below which rows were trimmed
        _durable                        the mark: the durable end of the log
        _lock                           the writer's lock
        _unsynced                       the redo files that may have batches which the segments lack after a power cut
        _committed/READER               the position that each reader has committed
        _sealed                         how far the log is sealed, if it has cold storage
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from ..errors import LocalError

__all__ = [
    "ASKS",
    "COMMITTED",
    "DURABLE",
    "GAPS",
    "IDENTITY",
    "LOCK",
    "SEALED",
    "SECRET",
    "SERVED",
    "STORE",
    "TRIMMED",
    "UNSYNCED",
    "Extent",
    "bytes_between",
    "check_name",
    "is_served",
    "is_source",
    "log_folder",
    "segment_name",
    "segment_position",
    "source_folder",
    "source_of",
]

DURABLE = "_durable"
LOCK = "_lock"
COMMITTED = "_committed"
IDENTITY = "_log.json"
SECRET = "_secret"
GAPS = "_gaps"
TRIMMED = "_trimmed"
SEALED = "_sealed"
STORE = "_store.json"
"""In the journal's folder: the store of its sealed segments."""
SERVED = "_served.json"
"""In the journal's folder: the collector that serves it."""
ASKS = "_asks"
"""In the journal's folder: what the owner of its group is to store; see `weirpool.journal.asks`."""
UNSYNCED = "_unsynced"

_SOURCE = "source="
_SUFFIX = ".arrows"
_SEGMENT = re.compile(r"(\d{20})\.arrows")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def check_name(name: str, what: str) -> str:
    """Return `name` if it is a valid file name on every system; otherwise raise `LocalError`, which names `what`."""
    if not _NAME.fullmatch(name):
        raise LocalError(
            f"{name!r} cannot name a {what}: use up to 128 letters, digits, '.', '_' and '-', a letter or digit first"
        )
    return name


def is_served(path: str | os.PathLike[str]) -> bool:
    """Return True for the URL of a collector that serves a journal, such as ``rsocket+tcp://collector:7879``."""
    scheme, separator, _ = os.fspath(path).partition("://")
    return bool(separator) and "+" in scheme


def source_folder(source: str) -> str:
    """Return the name of a source's folder."""
    return _SOURCE + check_name(source, "source")


def is_source(name: str) -> bool:
    """Return True if this is a valid name of a source."""
    return _NAME.fullmatch(name) is not None


def source_of(folder: str) -> str | None:
    """Return the source whose folder has this name, or None for another folder."""
    name = folder.removeprefix(_SOURCE)
    return name if name != folder and is_source(name) else None


def log_folder(path: str | os.PathLike[str], source: str) -> Path:
    """Return the folder of one source's log in a journal on a disk of this machine; `LocalError` for another URI."""
    text = os.fspath(path)
    if text.startswith("file://"):
        text = unquote(text.removeprefix("file://"))
    elif "://" in text:
        raise LocalError(
            f"the files of {text} can only be read from here; to write, seal or repair a journal, use a folder of this "
            "machine"
        )
    return Path(text, source_folder(source))


def segment_name(position: int) -> str:
    """Return the file name of the segment whose first row has this position."""
    return f"{position:020d}{_SUFFIX}"


def segment_position(name: str) -> int | None:
    """Return the position in a segment's file name, or None if the file is not a segment."""
    match = _SEGMENT.fullmatch(name)
    return int(match[1]) if match else None


@dataclass(frozen=True, slots=True)
class Extent:
    """The rows of a segment, and its bytes."""

    first: int
    end: int
    size: int
    times: tuple[int, int] | None = None
    """When the earliest and the latest row were appended, if known cheaply: microseconds since 1970."""

    def bytes_between(self, start: int, end: int) -> int:
        """Estimate the bytes of the rows from `start` to before `end`, as if all rows were equal."""
        rows = min(end, self.end) - max(start, self.first)
        return self.size * rows // (self.end - self.first) if rows > 0 else 0


def bytes_between(extents: Iterable[Extent], start: int, end: int) -> int:
    """Estimate the bytes of the rows from `start` to before `end`; exact at the ends of segments."""
    return sum(extent.bytes_between(start, end) for extent in extents)
