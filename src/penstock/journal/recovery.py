"""Where a log ends, after its writer closed it, was killed, or lost power."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .disk import disk_errors
from .format import Malformed, body_is_sound, corrupt, preamble_bytes, scan
from .layout import Mark, segment_name
from .storage import LogFolder

__all__ = ["Tail", "recover"]


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a log: its last segment, as far as it is sound."""

    first: int
    """The segment: the position of its first row."""
    size: int
    """Its sound bytes."""
    torn: int
    """Bytes behind them, of a batch that was not finished."""
    missing: int
    """Bytes behind them that were durable once: somebody else cut the file."""
    position: int
    """Of the next row."""
    state: bytes | None
    """What the collector recorded last."""


def recover(folder: Path) -> Tail | None:
    """Return where a log ends, or None if it holds no batch; a last segment without a sound one is removed.

    Below the durable mark only headers are looked at: bodies are their readers' to check. What lies behind the
    mark was never promised to anybody: the first batch there that is not whole and sound is the torn tail.

    Raises:
        JournalCorrupt: Below the mark something is damaged, so that nobody knows where the log ends.

    """
    log = LogFolder.local(folder)
    mark = log.mark()
    segments = log.segments()
    if mark is not None and mark.offset and (not segments or segments[-1][0] < mark.segment):
        raise corrupt(log.name(mark.segment), mark.segment, None, "the file is gone")
    while segments:
        first, _ = segments.pop()
        tail = _tail(log, first, mark)
        if tail is not None:
            return tail
        with disk_errors(log.name(first), "be removed"):
            (folder / segment_name(first)).unlink(missing_ok=True)
    return None


def _tail(log: LogFolder, first: int, mark: Mark | None) -> Tail | None:
    content = log.content(first)
    if content is None:
        return None
    durable = _durable_bytes(mark, first, content.size)
    offset, position, state, batches = 0, first, None, 0
    try:
        offset = preamble_bytes(content)
        for entry in scan(content, offset, content.size, first):
            if entry.offset >= durable and not body_is_sound(content, entry):
                raise Malformed("the CRC32C of its body is another", entry.offset, entry.position)
            offset, position, state, batches = entry.end_offset, entry.end, entry.note.state, batches + 1
    except Malformed as bad:
        # Without a mark nothing tells a torn tail from damage, so what is there must be sound.
        if mark is None or bad.offset < min(durable, content.size):
            raise corrupt(log.name(first), bad.position, None, bad.why) from None
    if offset < durable <= content.size:
        raise corrupt(log.name(first), position, None, "a batch does not end where it should")
    if not batches:
        return None
    return Tail(first, offset, content.size - offset, max(0, durable - content.size), position, state)


def _durable_bytes(mark: Mark | None, first: int, size: int) -> int:
    """Return how many bytes of the last segment its writer has promised."""
    if mark is None or mark.segment < first:
        return 0
    return mark.offset if mark.segment == first else size
