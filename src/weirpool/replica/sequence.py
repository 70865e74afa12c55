"""The bundles of a group, in an object store."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from ..errors import JournalCorrupt
from ..journal.layout import check_name
from ..objects import probe
from ..objects.ports import Store
from .bundle import MAX_BUNDLE_BYTES, PREFIX_BYTES, Bundle, Header, decode, decode_header

__all__ = ["Sequence"]

FOLDER: Final = "_replica"
READERS: Final = 16
"""Requests at once: a store takes some 20 ms for each."""
_NAME: Final = re.compile(r"(\d{20})\.bundle")


class Sequence:
    """The bundles of one group: numbered from 0, created and never replaced. All methods may raise `StoreError`.

    Args:
        store: The store.
        group: The group's name.

    Raises:
        ConditionIgnored: The store is known to have no conditional writes.

    """

    def __init__(self, store: Store, group: str) -> None:
        probe.check_known(store)
        self.store = store
        self.group = check_name(group, "group")
        self.folder = f"{FOLDER}/{group}"

    def __repr__(self) -> str:
        return f"Sequence({self.store.uri!r}, {self.group!r})"

    def name(self, number: int) -> str:
        """Return the name of the object of a bundle."""
        return f"{self.folder}/{number:020d}.bundle"

    def probe(self) -> None:
        """Find out whether `create` fences others: `ConditionIgnored` if not, `StoreError` if that is unclear."""
        probe.probe(self.store)

    def create(self, number: int, data: bytes) -> bool:
        """Write a bundle; return False if another process has written this number."""
        return self.store.create(self.name(number), data)

    def numbers(self, after: int = -1) -> list[int]:
        """Return the numbers of the existing bundles after a number, in order."""
        listed = self.store.list(self.folder, self.name(after) if after >= 0 else "")
        found = (_NAME.fullmatch(name.rpartition("/")[2]) for name, _ in listed)
        return [int(match[1]) for match in found if match]

    def header(self, number: int) -> tuple[Header, str] | None:
        """Return the header of a bundle and its digest; None if there is no such bundle."""
        size: int | None = PREFIX_BYTES
        while True:
            data = self.store.get(self.name(number), 0, size)
            if data is None:
                return None
            found = decode_header(data, self._place(number))
            if found is not None:
                self._check_number(number, found[0])
                return found[0], found[1]
            if size is None:
                raise JournalCorrupt(f"{self._place(number)}: is cut off; restore the object from a copy")
            size = None

    def read(self, number: int) -> Bundle | None:
        """Return a bundle; None if there is none of this number."""
        data = self.store.get(self.name(number), 0, MAX_BUNDLE_BYTES + 1)
        if data is None:
            return None
        bundle = decode(data, self._place(number))
        self._check_number(number, bundle.header)
        return bundle

    def headers(self, numbers: Iterable[int]) -> Iterator[Header]:
        """Yield the headers of bundles in ascending order; `JournalCorrupt` if one is missing, or does not follow."""
        before: tuple[Header, str] | None = None
        with ThreadPoolExecutor(READERS) as pool:
            for number, found in zip(numbers := list(numbers), pool.map(self.header, numbers), strict=True):
                if found is None:
                    raise JournalCorrupt(f"{self._place(number)}: is missing; restore the object from a copy")
                if before is not None and number == before[0].number + 1 and found[0].previous != before[1]:
                    raise JournalCorrupt(f"{self._place(number)}: does not follow the bundle before it; restore both")
                yield found[0]
                before = found

    def delete(self, numbers: Iterable[int]) -> None:
        """Delete bundles."""
        self.store.delete(map(self.name, numbers))

    def _place(self, number: int) -> str:
        return f"{self.store.uri.partition('?')[0]}/{self.name(number)}"

    def _check_number(self, number: int, header: Header) -> None:
        if header.number != number:
            raise JournalCorrupt(f"{self._place(number)}: is bundle {header.number}; restore the object from a copy")
