"""The folder of a log behind a collector: the interface by which logs are verified, compared and copied."""

from __future__ import annotations

from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.fs

from ..aio.peer import Peer
from ..errors import JournalError, JournalMissing
from ..journal.layout import segment_name, segment_position, source_folder
from ..journal.storage import LogFolder
from .messages import PREFIX, File, Named
from .remote import RemoteJournal

__all__ = ["ServedFolder"]

CREDIT: Final = 64
"""Items that a collector sends ahead, of 64 KiB each."""
TAKEN_BYTES: Final = 1 << 20
MAX_ITEMS: Final = 1 << 20
MAX_FILE_BYTES: Final = 1 << 32


class ServedFolder(LogFolder):
    """The folder of one log behind a collector, for reading.

    Args:
        url: The URL of the journal.
        source: The log's name.

    """

    is_near = False

    def __init__(self, url: str, source: str) -> None:
        # Its methods do not use the file system.
        super().__init__(pyarrow.fs.LocalFileSystem(), f"{url}/{source_folder(source)}")
        self._journal = RemoteJournal.at(url)
        self._source = source

    def segments(self) -> list[tuple[int, int]]:
        """Return first position and size in bytes of each segment, in order; none if there is no such log."""
        asked = Named(source=self._source)
        files: list[tuple[str, int]] = self._journal.collectors.call(
            self._source, "files", asked, list[tuple[str, int]]
        )
        positions = ((segment_position(name), size) for name, size in files)
        return sorted((first, size) for first, size in positions if first is not None)

    def content(self, first: int) -> pa.Buffer | None:
        """Return the current content of a segment, or None if it is gone."""
        return self._file(segment_name(first), None)

    def is_awaited(self) -> bool:
        """Return True if a collector has opened a stream without any item yet."""
        return self._journal.is_awaited(self._source)

    def small(self, file_name: str, limit: int) -> bytes | None:
        """Return a file other than a segment, cut one byte after `limit`; None if there is no such file."""
        found = self._file(file_name, limit + 1)
        return None if found is None else found.to_pybytes()

    def _file(self, name: str, limit: int | None) -> pa.Buffer | None:
        request = msgspec.json.encode(File(source=self._source, name=name, limit=limit))
        try:
            return self._journal.collectors.fetch(self._source, lambda peer: self._received(peer, request))
        except JournalMissing:
            return None

    async def _received(self, peer: Peer, request: bytes) -> pa.Buffer:
        """Return all bytes of a file."""
        sink = pa.BufferOutputStream()
        async with peer.stream(f"{PREFIX}file", request, credit=CREDIT) as stream:
            async for batch in stream.batches(MAX_ITEMS, TAKEN_BYTES):
                for item in batch["data"]:
                    sink.write(item.as_buffer())
                if sink.tell() > MAX_FILE_BYTES:
                    raise JournalError(f"{self.path}: a file has more than {MAX_FILE_BYTES} bytes; copy it on its disk")
        return sink.getvalue()
