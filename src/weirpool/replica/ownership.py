"""The right to append to the sequence of a group, until another process takes it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from msgspec.structs import replace

from ..errors import DiskFull, JournalCorrupt, JournalLocked, StoreError
from . import sequence as sequences
from .bundle import Header, Part, encode

__all__ = ["Ownership", "Superseded", "Update", "take"]

SNAPSHOT_BUNDLES: Final = 256
"""Bundles between snapshots: about a minute's, which a successor reads in a second or two."""


class Superseded(JournalLocked):
    """Another process has taken the group over. Nothing that was not acknowledged before belongs to this one."""


@dataclass(frozen=True, slots=True)
class Update:
    """What a bundle says of one log."""

    part: Part
    content: Sequence[bytes | memoryview] = ()
    """The batches of its rows, `part.size` bytes."""


@dataclass(frozen=True, slots=True)
class _Written:
    """A bundle that was sent to the store."""

    header: Header
    digest: str
    data: bytes
    logs: Mapping[str, Part]
    """The conditions of all logs after it."""


class Ownership:
    """Appends bundles, each after the last one. Not thread-safe; its methods block.

    Made by :func:`take`.

    Attributes:
        logs: The condition of each log of the group, by source: parts without rows, with identity and secret.
        number: The number of the last bundle.
        epoch: How often the group was taken over before.

    """

    def __init__(self, sequence: sequences.Sequence, owner: str, key: bytes, clock: Callable[[], float]) -> None:
        self._sequence = sequence
        self._owner = owner
        self._key = key
        self._clock = clock
        self._digest = ""
        self._snapshot = -SNAPSHOT_BUNDLES
        self._floor = 0
        # The floor in the last bundle; never after the last snapshot.
        self._recorded = 0
        self._deleted = 0
        self._fences: set[int] = set()
        # Bundles with rows that are in no sealed segment, as far as is known: their numbers, and ends by source.
        self._held: deque[tuple[int, Mapping[str, int]]] = deque()
        # A bundle of which it is unknown whether it is in the store.
        self._unclear: _Written | None = None
        self.logs: Mapping[str, Part] = {}
        self.number = -1
        self.epoch = 0

    @property
    def floor(self) -> int:
        """The number of the oldest bundle with rows that are in no sealed segment, as far as is known."""
        return self._floor

    def append(self, updates: Sequence[Update] = (), *, ended: bool = False) -> None:
        """Write the next bundle. On return it is in the store, and this process owned the group then.

        Without updates it tells others that the owner is alive; with `ended`, that it gives the group up.

        Raises:
            Superseded: Another process owns the group now. Nothing was written.
            StoreError: The store does not answer, and it is unknown whether the bundle was written. Call `settle`
                until it returns; do not append the updates again.
            DiskFull: The store is a folder, and there is no space; as for `StoreError`.

        """
        self.settle()
        written = self._encoded(updates, ended)
        try:
            self._write(written)
        except (StoreError, DiskFull):
            self._unclear = written
            raise

    def settle(self) -> None:
        """Write the bundle of the last call of `append`, if that has failed with `StoreError`; the same errors."""
        if self._unclear is not None:
            self._write(self._unclear)
            self._unclear = None

    def release(self, sealed: Mapping[str, int]) -> None:
        """Tell up to which position the rows of each log are in sealed segments in the store.

        The next `append` records which bundles are no longer needed, and `sweep` deletes them after that.
        """
        while self._held and all(sealed.get(source, 0) >= end for source, end in self._held[0][1].items()):
            self._held.popleft()
        self._floor = self._held[0][0] if self._held else max(self._floor, self._snapshot)

    def sweep(self) -> None:
        """Delete the bundles that no successor needs. Raises `StoreError` if that fails; it may be repeated."""
        if self._deleted < self._recorded:
            old = range(self._deleted, self._recorded)
            self._sequence.delete(number for number in old if number not in self._fences)
            self._deleted = self._recorded

    def _encoded(self, updates: Sequence[Update], ended: bool) -> _Written:
        number = self.number + 1
        logs = {**self.logs, **{update.part.source: _condition(self.logs, update.part) for update in updates}}
        complete = number - self._snapshot >= SNAPSHOT_BUNDLES or self._snapshot < self._floor
        header = Header(
            number=number,
            owner=self._owner,
            epoch=self.epoch,
            time=int(self._clock() * 1_000_000),
            previous=self._digest,
            snapshot=number if complete else self._snapshot,
            floor=self._floor,
            checksum=b"",
            parts=_all_parts(logs, updates) if complete else [update.part for update in updates],
            key=self._key,
            ended=ended,
        )
        data, digest = encode(header, [chunk for update in updates for chunk in update.content])
        return _Written(header, digest, data, logs)

    def _write(self, written: _Written) -> None:
        number = written.header.number
        # Creating it is the fence. The look before it is another one, should the store ignore the condition one day.
        found = self._sequence.header(number)
        if found is None and not self._sequence.create(number, written.data):
            found = self._sequence.header(number)
            if found is None:
                raise self._superseded(None)
        # The answer to an earlier attempt may have been lost.
        if found is not None and found[1] != written.digest:
            raise self._superseded(found[0])
        self.number, self._digest, self.logs = number, written.digest, written.logs
        self._snapshot, self._recorded = written.header.snapshot, written.header.floor
        self._hold(written.header)

    def _hold(self, header: Header) -> None:
        ends = {part.source: part.end for part in header.parts if part.size}
        if ends:
            self._held.append((header.number, ends))

    def _superseded(self, found: Header | None) -> Superseded:
        return Superseded(
            f"group {self._sequence.group!r} of {self._sequence.store.uri} belongs to another collector now "
            f"({found.owner if found else 'unknown'}), which has everything that this one has acknowledged"
        )


def take(
    sequence: sequences.Sequence,
    *,
    owner: str | None = None,
    key: bytes = b"",
    clock: Callable[[], float] = time.time,
) -> Ownership:
    """Take a group over: from nobody, from a collector that ended, or from one that seems to be gone.

    If that one is alive, its next bundle fails, and it stops.

    Args:
        sequence: The group's bundles.
        owner: The id of this process; random by default. It must differ from all others, before and after.
        key: Tells a successor whether it has the key of the secrets.
        clock: Returns the time in seconds since 1970, for people.

    Returns:
        The ownership, with the condition of each log. Restore the logs, then append.

    Raises:
        Superseded: Another process was faster, or the owner is alive. Watch the sequence, and try again later.
        JournalCorrupt: A bundle is damaged.
        ConditionIgnored: The store does not fence others.
        StoreError: The store does not answer.

    """
    sequence.probe()
    owned = Ownership(sequence, owner or uuid4().hex, key, clock)
    numbers = sequence.numbers()
    if numbers:
        _recall(owned, sequence, numbers)
    # This bundle fences the former owner. It is a snapshot, because that one's may be far back.
    owned._fences.add(owned.number + 1)
    owned.append()
    return owned


def _recall(owned: Ownership, sequence: sequences.Sequence, numbers: Sequence[int]) -> None:
    """Continue after the last bundle of the former owner."""
    found = sequence.header(numbers[-1])
    if found is None:
        raise owned._superseded(None)
    last, owned._digest = found
    owned.number, owned.epoch, owned._floor = last.number, last.epoch + 1, last.floor
    owned._deleted = last.floor
    try:
        epoch = None
        for header in sequence.headers(range(last.floor, last.number + 1)):
            if header.epoch != epoch:
                # Perhaps not the first of its owner, but then it is one more that stays.
                owned._fences.add(header.number)
                epoch = header.epoch
            owned._hold(header)
            if header.number >= last.snapshot:
                owned.logs = {**owned.logs, **{each.source: _condition(owned.logs, each) for each in header.parts}}
    except JournalCorrupt:
        if sequence.numbers(last.number):
            # Its owner is alive, and has deleted what is no longer needed.
            raise owned._superseded(None) from None
        raise


def _condition(logs: Mapping[str, Part], part: Part) -> Part:
    """Return the condition of a log after a part, with what the part does not repeat."""
    before = logs.get(part.source)
    return replace(
        part,
        first=part.end,
        size=0,
        identity=part.identity if part.identity is not None or before is None else before.identity,
        secret=part.secret if part.secret is not None or before is None else before.secret,
        readers=part.readers if part.readers is not None or before is None else before.readers,
        before="",
    )


def _all_parts(logs: Mapping[str, Part], updates: Sequence[Update]) -> list[Part]:
    """Return the parts of a snapshot: first those with rows, in the order of their content."""
    fresh = {update.part.source: update.part for update in updates}
    full = {
        source: replace(part, identity=logs[source].identity, secret=logs[source].secret, readers=logs[source].readers)
        for source, part in fresh.items()
    }
    return [*full.values(), *(part for source, part in logs.items() if source not in fresh)]
