"""Segments under a wrong name: copies, swapped files, and files of other logs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from .damage import headers
from .format import Entry, Malformed, entry_at, genesis, preamble_log, scan
from .mark import Mark
from .storage import LogFolder

__all__ = ["Misplaced", "misplaced"]


@dataclass(frozen=True, slots=True)
class Misplaced:
    """A segment under a wrong name."""

    name: int
    """The position in its name."""
    home: int | None
    """The position that it starts with, if no other file has that name; None: it is set aside."""
    why: str
    """The reason for this conclusion."""


@dataclass(frozen=True, slots=True)
class _File:
    """The start of a segment: `top` is its first batch, `log` the UUID of its log, if they are readable."""

    name: int
    content: pa.Buffer
    log: str | None
    start: int
    top: Entry | None


def misplaced(log: LogFolder, uuid: str, mark: Mark | None, trimmed: int) -> list[Misplaced]:
    """Return the segments of a folder under a wrong name, according to their valid starts; nothing is changed.

    A file with a damaged start is assumed to have the right name, unless the previous segment has these rows. Segments
    with rows below `trimmed` are set aside.
    """
    files = [_read_start(first, content) for first, _ in log.segments() if (content := log.content(first)) is not None]
    wrong = {file.name: file for file in [*_misnamed(files, mark), *_foreign(files, uuid, mark)]}
    taken = {file.name for file in files} - wrong.keys()
    homes: dict[int, int] = {}
    # The longest of several copies.
    for file in sorted(wrong.values(), key=lambda file: -file.content.size):
        home = file.name if file.top is None else file.top.position
        if home >= trimmed and home not in taken and file.log == uuid:
            homes[file.name] = home
            taken.add(home)
        elif any(entry.position == file.name for entry in _entries(file)) and file.log == uuid:
            # The batch of this name follows a wrong one, so the name is right.
            del wrong[file.name]
    placed = [replace(file, name=homes[file.name]) for file in files if file.name in homes]
    placed += [file for file in files if file.name not in wrong]
    moved = {*homes.values()}
    for file in _inside(sorted(placed, key=lambda file: file.name), mark):
        if file.name not in moved:
            wrong[file.name] = file
    return [Misplaced(name, homes.get(name), _why(file, uuid)) for name, file in sorted(wrong.items())]


def _read_start(first: int, content: pa.Buffer) -> _File:
    try:
        start, log = preamble_log(content)
    except Malformed:
        return _File(first, content, None, 0, None)
    try:
        top = entry_at(memoryview(content), start, content.size, first)
    except Malformed:
        top = None
    return _File(first, content, log, start, top)


def _misnamed(files: list[_File], mark: Mark | None) -> Iterator[_File]:
    """Yield the segments under a wrong name, except those with wrong batches at their start."""
    ends = [*(file.name for file in files[1:]), 1 << 62 if mark is None else mark.end]
    suspects = [
        (file, file.top, end)
        for file, end in zip(files, ends, strict=False)
        if file.top is not None and file.top.position != file.name
    ]
    known = {entry.digest for file in files for entry in _entries(file)} if suspects else set()
    for file, top, end in suspects:
        # Otherwise its own first batches may be missing.
        if file.name < top.position < end and top.note.prev not in known:
            continue
        # Batches between the name and that position, or anywhere if it is less, belong to the name.
        rest = (entry.position for entry in headers(file.content, _entries(file)[-1].end_offset))
        if not any(file.name <= at and (at < top.position or top.position < file.name) for at in rest):
            yield file


def _foreign(files: list[_File], uuid: str, mark: Mark | None) -> Iterator[_File]:
    """Yield the segments of other logs. One with a batch that follows this log's is its own, with a damaged start."""
    foreign = [file for file in files if file.log not in (None, uuid) and file.top is not None]
    if not foreign:
        return
    known = {genesis(uuid), *(entry.digest for file in files for entry in _entries(file))}
    own = {entry.note.prev for file in files if file.log == uuid for entry in _entries(file)}
    for file in foreign:
        entries = _entries(file)
        mine = {genesis(uuid)} | (known - {entry.digest for entry in entries})
        ends_log = mark is not None and mark.head == entries[-1].digest
        if entries[0].note.prev not in mine and entries[-1].digest not in own and not ends_log:
            yield file


def _inside(files: list[_File], mark: Mark | None) -> Iterator[_File]:
    """Yield the segments whose name is a position within the previous segment, and that nothing confirms."""
    named = {file.top.note.prev for file in files if file.top is not None}
    if mark is not None:
        named.add(mark.head)
    before: list[Entry] = []
    for file in files:
        entries = _entries(file) if file.top is not None and file.top.position == file.name else []
        heads = {entry.digest for entry in before if entry.end == file.name}
        confirmed = entries and (entries[0].note.prev in heads or entries[-1].digest in named)
        within = before and before[-1].end > file.name and (mark is None or mark.segment != file.name)
        if (within and not confirmed) or (not entries and mark is not None and mark.segment < file.name < mark.end):
            yield file
        else:
            before = entries


def _entries(file: _File) -> list[Entry]:
    """Return the batches of a segment from its start up to the first that does not follow the previous one."""
    found: list[Entry] = []
    if file.top is not None:
        try:
            found.extend(scan(file.content, file.start, file.content.size, file.top.position, None))
        except Malformed:
            pass
    return found


def _why(file: _File, uuid: str) -> str:
    if file.log not in (None, uuid):
        return f"it belongs to another log, {(file.log or '')[:64]!r}"
    if file.top is not None and file.top.position != file.name:
        return f"its first batch has position {file.top.position}"
    return f"position {file.name} is within the previous segment"
