"""The laboratory of damaged journals: parts of a log are flipped, cut, swapped, repeated, or taken from elsewhere.

The truth is known: each row holds its number. A log must give it back, or say that it cannot. Three look at every
damaged log: `verify` names the damage, a reader gives no wrong row, and a writer goes on behind the true end or not at
all. Who accepts the loss finds it recorded, and no position is given away twice.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pyarrow as pa

from tests.journal.logs import SOURCE, entries, flip, segment
from weirpool.errors import JournalError
from weirpool.journal import ITEMS, Journal, JournalReader, JournalWriter
from weirpool.journal.format import Entry
from weirpool.journal.layout import DURABLE, log_folder

__all__ = ["accepted_losses", "damaged_logs"]

SEEDS = 6
ROWS = 5
BATCHES = 12
SEGMENT_BYTES = 3_000
"""Two batches each."""


class Specimen:
    """A log, two logs that are like it, and what it held a while ago.

    Attributes:
        journal: The journal with the log.
        fork: Another end of the same log: its later batches hold other rows, in as many bytes.
        other: A log of the same positions with a UUID of its own; its rows are others.
        end: Where the log ends.

    """

    def __init__(self, folder: Path, *, trimmed: bool = False, forked: int = BATCHES // 2) -> None:
        self.journal, self.fork, self.other = (folder / name for name in ("journal", "fork", "other"))
        shift = 100_000
        self._forks = _write(self.journal, 0, forked)
        shutil.copytree(self.journal, self.fork)
        self.end = _write(self.journal, 0, BATCHES - forked)
        _write(self.fork, shift, BATCHES - forked)
        _write(self.other, shift, BATCHES)
        if trimmed:
            for journal in (self.journal, self.fork, self.other):
                Journal(journal).trim(SOURCE, self.end - 7 * ROWS, retain_bytes=0)

    def swap(self, rng: random.Random) -> None:
        """Let two batches change places."""
        folder = log_folder(self.journal, SOURCE)
        (one, left), (other, right) = rng.sample(entries(folder), 2)
        contents = {first: bytearray(segment(folder, first).read_bytes()) for first in {one, other}}
        a = contents[one][left.offset : left.end_offset]
        b = contents[other][right.offset : right.end_offset]
        for first, entry, data in sorted([(one, left, b), (other, right, a)], key=lambda each: -each[1].offset):
            contents[first][entry.offset : entry.end_offset] = data
        for first, content in contents.items():
            segment(folder, first).write_bytes(content)

    def repeat(self, rng: random.Random) -> None:
        """Put a batch where another one was."""
        folder = log_folder(self.journal, SOURCE)
        (_, again), (first, gone) = rng.sample(entries(folder), 2)
        source = next(path for path, entry in entries(folder) if entry == again)
        data = segment(folder, source).read_bytes()[again.offset : again.end_offset]
        _put(segment(folder, first), gone.offset, gone.end_offset, data)

    def replay(self, rng: random.Random) -> None:
        """Put a batch of the fork in the place of the one at the same position."""
        self._from_fork(rng.choice(self._forked()))

    def replay_first(self, rng: random.Random) -> None:
        """The same with the first batch of the fork: it names the batch before it rightly."""
        self._from_fork(self._forked()[0])

    def replay_rest(self, rng: random.Random) -> None:
        """Put the fork in the place of the log from a batch on, but keep the mark."""
        rest = self._forked()
        for chosen in rest[rng.randrange(len(rest)) :]:
            self._from_fork(chosen)

    def flip(self, rng: random.Random) -> None:
        """Turn one bit of a batch."""
        folder = log_folder(self.journal, SOURCE)
        first, entry = rng.choice(entries(folder))
        body = entry.offset + entry.header_bytes
        flip(segment(folder, first), rng.randrange(body, body + entry.body_bytes), rng.randrange(8))

    def flip_header(self, rng: random.Random) -> None:
        """Turn one bit of what is no row."""
        folder = log_folder(self.journal, SOURCE)
        first, entry = rng.choice(entries(folder))
        flip(segment(folder, first), rng.randrange(entry.offset, entry.offset + entry.header_bytes), rng.randrange(8))

    def cut(self, rng: random.Random) -> None:
        """Cut a segment at any byte."""
        path = rng.choice(self._segments())
        os.truncate(path, rng.randrange(path.stat().st_size))

    def cut_last(self, rng: random.Random) -> None:
        """Cut the last segment where a batch ends."""
        folder = log_folder(self.journal, SOURCE)
        first, entry = rng.choice([each for each in entries(folder) if each[0] == int(self._segments()[-1].stem)])
        os.truncate(segment(folder, first), entry.offset)

    def remove(self, rng: random.Random) -> None:
        """Remove a segment."""
        rng.choice(self._segments()).unlink()

    def take_from_another(self, rng: random.Random) -> None:
        """Put the segments and the mark of another log in the place of these."""
        folder, other = log_folder(self.journal, SOURCE), log_folder(self.other, SOURCE)
        for path in self._segments():
            path.unlink()
        for path in [*other.glob("*.arrows"), other / DURABLE]:
            shutil.copy(path, folder)

    def _segments(self) -> list[Path]:
        return sorted(log_folder(self.journal, SOURCE).glob("*.arrows"))

    def _forked(self) -> list[tuple[int, Entry]]:
        return [each for each in entries(log_folder(self.journal, SOURCE)) if each[1].position >= self._forks]

    def _from_fork(self, chosen: tuple[int, Entry]) -> None:
        first, entry = chosen
        data = segment(log_folder(self.fork, SOURCE), first).read_bytes()[entry.offset : entry.end_offset]
        _put(segment(log_folder(self.journal, SOURCE), first), entry.offset, entry.end_offset, data)


HARM: dict[str, Callable[[Specimen, random.Random], None]] = {
    "two batches swapped": Specimen.swap,
    "a batch repeated": Specimen.repeat,
    "a batch of another end of the log": Specimen.replay,
    "the first batch of another end of the log": Specimen.replay_first,
    "the rest of another end of the log": Specimen.replay_rest,
    "a bit of the rows flipped": Specimen.flip,
    "a bit of a header flipped": Specimen.flip_header,
    "a segment cut": Specimen.cut,
    "the last segment cut between two batches": Specimen.cut_last,
    "a segment removed": Specimen.remove,
    "the segments of another log": Specimen.take_from_another,
}


def damaged_logs(folder: Path) -> Iterator[str]:
    """Damage a log; nobody may take it for what was written (THREATS 97)."""
    with mock.patch.object(os, "fsync", lambda descriptor: None):
        # The log forks at the beginning of a segment, within one, and at its last batch.
        for number, forked in enumerate((BATCHES // 2, BATCHES // 2 + 1, BATCHES - 1)):
            template = folder / f"template-{number}"
            specimen = Specimen(template, trimmed=number == 1, forked=forked)
            for what, harm in HARM.items():
                for seed in range(SEEDS):
                    rng = random.Random(f"{what} {number} {seed}")
                    specimen.journal = folder / "damaged"
                    shutil.copytree(template / "journal", specimen.journal)
                    harm(specimen, rng)
                    yield from (f"{what}, fork {number}, seed {seed}: {wrong}" for wrong in _unnoticed(specimen))
                    shutil.rmtree(specimen.journal)


def accepted_losses(folder: Path) -> Iterator[str]:
    """Cut the end off a log and accept that: the loss is a gap, and no other row gets its positions (THREATS 97)."""
    with mock.patch.object(os, "fsync", lambda descriptor: None):
        specimen = Specimen(folder)
        whole = specimen.journal
        for seed in range(SEEDS):
            rng = random.Random(seed)
            specimen.journal = folder / f"cut-{seed}"
            shutil.copytree(whole, specimen.journal)
            specimen.cut_last(rng)
            try:
                yield from (f"accepted loss, seed {seed}: {wrong}" for wrong in _given_away(specimen))
            except JournalError as error:
                yield f"accepted loss, seed {seed}: what was accepted is an error still: {error}"


def _given_away(specimen: Specimen) -> Iterator[str]:
    with JournalWriter.open(specimen.journal, SOURCE, accept_loss=True) as writer:
        if writer.position < specimen.end:
            yield f"position {writer.position} is given to another row; rows were durable up to {specimen.end}"
        _append(writer, 0, 1)
        reader = JournalReader(specimen.journal, SOURCE)
        lost = [gap.lost for gap in reader.gaps(0) if gap.lost is not None]
        held = [value for batch in reader.read(0, reader.end) for value in batch["position"].to_pylist()]
    missing = set(range(specimen.end)) - set(held)
    if missing != {position for first, end in lost for position in range(first, end)}:
        yield f"positions {sorted(missing)} are missing, and the gaps name {lost}"


def _unnoticed(specimen: Specimen) -> Iterator[str]:
    """Yield who takes a damaged log for a sound one."""
    if not Journal(specimen.journal).verify()[SOURCE].problems:
        yield "verify finds the log sound"
    try:
        reader = JournalReader(specimen.journal, SOURCE)
        held = [int(value) for batch in reader.read(reader.first, reader.end) for value in batch["data"].to_pylist()]
        if (reader.end, held) != (specimen.end, list(range(reader.first, specimen.end))):
            yield f"a reader gets {len(held)} rows up to {reader.end}, and they are not those that were written"
    except JournalError:
        pass
    try:
        with JournalWriter.open(specimen.journal, SOURCE) as writer:
            if (writer.position, writer.state) != (specimen.end, b"at %d" % specimen.end):
                yield f"a writer goes on at {writer.position} with {writer.state!r}"
    except JournalError:
        pass


def _write(journal: Path, shift: int, batches: int) -> int:
    """Append batches of as many bytes, whatever the numbers in them; return where the log ends."""
    with JournalWriter.open(journal, SOURCE, segment_bytes=SEGMENT_BYTES, clock=lambda: 1.7e9) as writer:
        _append(writer, shift, batches)
        return writer.position


def _append(writer: JournalWriter, shift: int, batches: int) -> None:
    for _ in range(batches):
        position = writer.position
        data = [b"%06d" % number for number in range(position + shift, position + shift + ROWS)]
        rows = pa.record_batch([pa.array(data, pa.binary()), pa.nulls(ROWS, pa.binary())], schema=ITEMS)
        writer.append(rows, "numbers", b"at %d" % (position + ROWS))


def _put(path: Path, start: int, end: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[start:end] = data
    path.write_bytes(content)
