"""The versions of a log's manifest in a store, and their pages.

A new version is created, never overwritten. Whoever creates it first has published; all others read it and decide
again. Old versions are removed, so finding the newest one takes a short list, however old the log is.
"""

from __future__ import annotations

from typing import Final

from ..errors import JournalCorrupt, StoreError
from ..journal import gaps
from ..journal.gaps import Gap
from ..journal.layout import source_folder
from ..objects import Store
from .manifest import (
    MAX_BYTES,
    GapFile,
    Manifest,
    Page,
    Segment,
    checksum,
    decode,
    decode_page,
    encode,
    folded,
    segment_file,
)

__all__ = ["MANIFESTS", "Catalog"]

MANIFESTS: Final = "_manifest"
PAGES: Final = "_pages"
KEPT_VERSIONS: Final = 32
"""Versions to keep: readers may still use them, and a writer that is that far behind has surely noticed others."""
_TIDY_EVERY: Final = 8
_TRIES: Final = 5


class Catalog:
    """The manifests of one log in a store. Not thread-safe."""

    def __init__(self, store: Store, source: str) -> None:
        self.store = store
        self.folder = source_folder(source)
        self._pages: dict[str, list[Segment]] = {}
        self._gaps: tuple[str, list[Gap]] = ("", [])

    def newest(self, known: Manifest | None = None) -> Manifest | None:
        """Return the newest version; None if there is none. With `known`, only later ones are looked for.

        Raises:
            JournalCorrupt: It is damaged.
            StoreError: The store cannot be reached.

        """
        after = "" if known is None else self._version_name(known.version)
        for _ in range(_TRIES):
            names = [name for name, _ in self.store.list(f"{self.folder}/{MANIFESTS}", after=after)]
            if not names:
                return known
            data = self.store.get(names[-1], 0, MAX_BYTES + 1)
            if data is not None:
                manifest = decode(data, f"{self.store.uri}/{names[-1]}")
                if self._version_name(manifest.version) != names[-1]:
                    raise JournalCorrupt(
                        f"{self.store.uri}/{names[-1]}: is version {manifest.version} of the manifest; restore the "
                        "file from a copy of this log"
                    )
                return manifest
            # Many later versions were published meanwhile.
        raise JournalCorrupt(f"{self.store.uri}/{self.folder}: the newest version of its manifest cannot be read")

    def publish(self, manifest: Manifest) -> bool:
        """Publish a new version. Return False if there is another one: read that, and decide again."""
        manifest, page, data = folded(manifest)
        if page is not None:
            self.store.put(self._page_name(page.name), data)
        name = self._version_name(manifest.version)
        if not self.store.create(name, encode(manifest)):
            return False
        before = self._version_name(manifest.version - 1)
        if [found for found, _ in self.store.list(f"{self.folder}/{MANIFESTS}", after=before)] != [name]:
            # This version had existed and was removed: this writer is far behind, and nobody reads what it wrote.
            return False
        if manifest.version % _TIDY_EVERY == 0:
            self._tidy(manifest)
        return True

    def fence(self, uuid: str) -> Manifest | None:
        """Publish the newest version of a log's manifest again, so that nobody can publish who has decided before.

        It returns that version; None if the log with this UUID has no manifest here. Errors are those of `newest`.
        """
        for _ in range(_TRIES):
            manifest = self.newest()
            if manifest is None or manifest.uuid != uuid:
                return None
            following = manifest.successor()
            if self.publish(following):
                return following
        raise StoreError(f"{self.store.uri}/{self.folder}: others keep publishing versions of its manifest; call again")

    def segments(self, manifest: Manifest, start: int = 0, end: int = 1 << 62) -> list[Segment]:
        """Return the entries with rows between two positions, in order; pages are read if they have some."""
        start = max(start, manifest.first)
        found = []
        for page in manifest.pages:
            if page.first < end and page.end > start:
                found += self._page(page)
        found += manifest.segments
        return [each for each in found if each.first < end and each.end > start]

    def name(self, segment: Segment) -> str:
        """Return the name of a segment's file in the store."""
        return f"{self.folder}/{segment.name}"

    def file(self, first: int) -> str:
        """Return the name in the store of the segment that starts with a position."""
        return f"{self.folder}/{segment_file(first)}"

    def gaps(self, manifest: Manifest) -> list[Gap]:
        """Return the gaps of the log up to the end of a manifest, in order."""
        file = manifest.gaps
        if file is None:
            return []
        if self._gaps[0] != file.name:
            name = self._page_name(file.name)
            data = self.store.get(name, 0, gaps.MAX_GAPS_BYTES + 1)
            if data is None or checksum(data) != file.checksum:
                raise _lost(self.store, name)
            self._gaps = file.name, gaps.decode(data, f"{self.store.uri}/{name}")
        return self._gaps[1]

    def keep_gaps(self, manifest: Manifest, found: list[Gap]) -> GapFile | None:
        """Write the gaps for the version after a manifest, unless they are the same; return their file."""
        known = self.gaps(manifest)
        merged = gaps.merge(known, found)
        if len(merged) == len(known):
            return manifest.gaps
        data = gaps.encode(merged)
        digest = checksum(data)
        file = GapFile(f"{manifest.version + 1:020d}-{digest[:16]}.gaps", digest)
        self.store.put(self._page_name(file.name), data)
        return file

    def _page(self, page: Page) -> list[Segment]:
        found = self._pages.get(page.name)
        if found is None:
            name = self._page_name(page.name)
            data = self.store.get(name, 0, MAX_BYTES + 1)
            if data is None:
                raise _lost(self.store, name)
            found = self._pages[page.name] = decode_page(data, page, f"{self.store.uri}/{name}")
        return found

    def _tidy(self, manifest: Manifest) -> None:
        """Remove old versions, and pages that no version uses. What is being published now has a later version."""
        oldest = manifest.version - KEPT_VERSIONS
        versions = [name for name, _ in self.store.list(f"{self.folder}/{MANIFESTS}")]
        used = {page.name for page in manifest.pages} | ({manifest.gaps.name} if manifest.gaps else set())
        pages = [name for name, _ in self.store.list(f"{self.folder}/{PAGES}")]
        limit = self._page_name(f"{max(oldest, 0):020d}")
        unused = [name for name in pages if name < limit and name.rpartition("/")[2] not in used]
        self.store.delete([*(name for name in versions if name < self._version_name(max(oldest, 0))), *unused])

    def _version_name(self, version: int) -> str:
        return f"{self.folder}/{MANIFESTS}/{version:020d}.json"

    def _page_name(self, name: str) -> str:
        return f"{self.folder}/{PAGES}/{name}"


def _lost(store: Store, name: str) -> JournalCorrupt:
    return JournalCorrupt(f"{store.uri}/{name}: the file is missing or damaged; restore it from a copy of this log")
